// What every JavaScript program of the matrix shares: its records, the lines that it prints, and
// its steps.
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
