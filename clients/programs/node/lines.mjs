// What every JavaScript program of the matrix shares: its records, the lines that it prints, and
// its steps.
import fs from 'node:fs'
import https from 'node:https'

export const PARTITIONS = 4
export const REPLICAS = 3
export const RETENTION_MS = '7200000'
export const IDEMPOTENT = 'idempotent'

// Key, value (null for none) and headers of record n.
export function record (n) {
  const value = n % 20 === 19 ? null : `value-${n}-${'x'.repeat(60)}`
  return { key: `key-${n % 7}`, value, headers: { n: String(n), empty: '' } }
}

export function show (partition, offset, key, value, headers) {
  const pairs = headers.map(([name, text]) => `${name}=${text ?? ''}`).join(',')
  const length = value == null ? -1 : value.length
  console.log(['record', partition, offset, key, length, value ?? '', pairs].join('\t'))
}

// How to come in: the lines KEY=VALUE of the file that CLIENT_ACCESS names; else empty.
export function access () {
  const path = process.env.CLIENT_ACCESS
  if (!path) return {}
  const lines = fs.readFileSync(path, 'utf8').trim().split('\n')
  return Object.fromEntries(lines.map(line => {
    const at = line.indexOf('=')
    return [line.slice(0, at), line.slice(at + 1)]
  }))
}

// Trusts the authority, and shows the client's certificate if it has one.
export function tlsOptions (told) {
  const options = { ca: fs.readFileSync(told.ca) }
  if (!told.certificate) return options
  return { ...options, cert: fs.readFileSync(told.certificate), key: fs.readFileSync(told.key) }
}

// A token by the client's credentials (RFC 6749, 4.4).
export function token (told) {
  return new Promise((resolve, reject) => {
    const auth = `${told.client_id}:${told.client_secret}`
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const options = { method: 'POST', auth, headers, ca: fs.readFileSync(told.ca) }
    const request = https.request(told.token_url, options, answer => {
      let text = ''
      answer.on('data', part => { text += part })
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(JSON.parse(text).access_token)
        else reject(new Error(`HTTP ${answer.statusCode}`))
      })
    })
    request.on('error', reject)
    request.end('grant_type=client_credentials')
  })
}

export function asked () {
  return new Promise(resolve => process.once('SIGTERM', resolve))
}

export async function main (steps) {
  const [step, bootstrap, ...rest] = process.argv.slice(2)
  try {
    await steps[step](bootstrap.split(','), ...rest)
  } catch (error) {
    const causes = (error.errors ?? []).map(cause => cause.message)
    console.error([error.message, ...causes, error.cause?.message ?? ''].join('; '))
    process.exit(1)
  }
}
