// The program of kafkajs.
import { lz4Compress, lz4Decompress, snappyCompress, snappyDecompress } from '@platformatic/wasm-utils'
import kafkajs from 'kafkajs'
import {
  IDEMPOTENT, PARTITIONS, REPLICAS, RETENTION_MS, access, asked, main, record, show, tlsOptions, token
} from './lines.mjs'

const {
  AclOperationTypes, AclPermissionTypes, AclResourceTypes, CompressionCodecs, CompressionTypes,
  ConfigResourceTypes, Kafka, Partitioners, ResourcePatternTypes, logLevel
} = kafkajs
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4
}

// kafkajs has gzip; the others come from elsewhere, as its documentation says.
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async encoder => Buffer.from(snappyCompress(encoder.buffer)),
  decompress: async bytes => Buffer.from(snappyDecompress(bytes))
})
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => Buffer.from(lz4Compress(encoder.buffer)),
  decompress: async bytes => Buffer.from(lz4Decompress(bytes))
})

function client (brokers, more = {}) {
  const told = access()
  if (!told.protocol) return new Kafka({ brokers, logLevel: logLevel.NOTHING })
  const reauthenticationThreshold = 1000 // before the end; by default 10 s, longer than these logins
  const options = {
    ...more, brokers, logLevel: logLevel.NOTHING, ssl: tlsOptions(told), reauthenticationThreshold
  }
  if (told.token_url) {
    const oauthBearerProvider = async () => ({ value: await token(told) })
    options.sasl = { mechanism: 'oauthbearer', oauthBearerProvider }
  } else if (told.mechanism) {
    const mechanism = told.mechanism.toLowerCase()
    options.sasl = { mechanism, username: told.user, password: told.password }
  }
  return new Kafka(options)
}

async function admin (brokers, topic) {
  const one = client(brokers).admin()
  await one.connect()
  const topics = [topic, `${topic}-gone`].map(name => {
    return { topic: name, numPartitions: PARTITIONS, replicationFactor: REPLICAS }
  })
  await one.createTopics({ topics, waitForLeaders: true })
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const configEntries = [{ name: 'retention.ms', value: RETENTION_MS }]
  await one.alterConfigs({ resources: [{ ...resource, configEntries }] })
  let retention = ''
  while (retention !== RETENTION_MS) { // a broker may hear of the change a moment later
    const asked = { ...resource, configNames: ['retention.ms'] }
    const described = await one.describeConfigs({ resources: [asked], includeSynonyms: false })
    retention = described.resources[0].configEntries[0].configValue
  }
  const found = await one.fetchTopicMetadata({ topics: [topic] })
  console.log(`partitions\t${found.topics[0].partitions.length}\nretention.ms\t${retention}`)
  await one.deleteTopics({ topics: [`${topic}-gone`] })
  await one.disconnect()
}

async function produce (brokers, topic, count, ...kinds) {
  for (const kind of kinds) {
    const idempotent = kind === IDEMPOTENT
    const createPartitioner = Partitioners.DefaultPartitioner
    const producer = client(brokers).producer({ idempotent, createPartitioner })
    await producer.connect()
    const messages = Array.from({ length: Number(count) }, (_, n) => record(n))
    await producer.send({ topic: `${topic}-${kind}`, compression: CODECS[kind], acks: -1, messages })
    await producer.disconnect()
  }
}

function print (partition, { offset, key, value, headers }) {
  const pairs = Object.entries(headers).map(([name, text]) => [name, text.toString()])
  show(partition, offset, key.toString(), value?.toString(), pairs)
}

// kafkajs has no assignment without a group: a group of its own, from the beginning.
async function consume (brokers, topic, count) {
  const consumer = client(brokers).consumer({ groupId: `${topic}-alone` })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let left = Number(count)
  await new Promise(resolve => {
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        if (left > 0) print(partition, message)
        if (--left === 0) resolve()
      }
    })
  })
  await consumer.disconnect()
}

async function member (brokers, topic, groupId) {
  const consumer = client(brokers).consumer({ groupId, heartbeatInterval: 500 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, heartbeat }) => {
      for (const message of batch.messages) print(batch.partition, message)
      const offset = String(BigInt(batch.lastOffset()) + 1n)
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset }])
      await heartbeat()
    }
  })
  await asked()
  await consumer.disconnect()
}

// Writes idempotently until it is asked to stop; prints each record that was acknowledged.
async function writer (brokers, topic) {
  const createPartitioner = Partitioners.DefaultPartitioner
  const producer = client(brokers).producer({ idempotent: true, createPartitioner })
  await producer.connect()
  let isAsked = false
  asked().then(() => { isAsked = true })
  for (let n = 0; !isAsked; n++) {
    await producer.send({ topic, acks: -1, messages: [record(n)] })
    console.log(`acked\t${n}`)
  }
  await producer.disconnect()
}

// Prints the log's ends, the groups that are seen, and what a group has committed.
async function survey (brokers, topic, groupId) {
  const one = client(brokers).admin()
  await one.connect()
  for (const { partition, high } of await one.fetchTopicOffsets(topic)) {
    console.log(`end\t${partition}\t${high}`)
  }
  for (const found of (await one.listGroups()).groups) console.log(`group\t${found.groupId}`)
  for (const { partition, offset } of (await one.fetchOffsets({ groupId, topics: [topic] }))[0].partitions) {
    console.log(`committed\t${partition}\t${offset}`)
  }
  await one.disconnect()
}

async function administer (brokers, task) {
  const one = client(brokers, { retry: { retries: 2 } }).admin()
  await one.connect()
  await task(one)
  await one.disconnect()
}

async function subscribe (brokers, topic, groupId) {
  const consumer = client(brokers, { retry: { retries: 2 } }).consumer({ groupId, retry: { retries: 2 } })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({ eachMessage: async () => resolve() })
  })
  await consumer.disconnect()
}

const EVERYTHING = {
  resourceType: AclResourceTypes.ANY,
  resourcePatternType: ResourcePatternTypes.ANY,
  operation: AclOperationTypes.ANY,
  permissionType: AclPermissionTypes.ANY
}
const ATTEMPTS = {
  write: async (brokers, topic) => {
    const createPartitioner = Partitioners.DefaultPartitioner
    const producer = client(brokers).producer({ idempotent: true, createPartitioner })
    await producer.connect()
    await producer.send({ topic, acks: -1, messages: [{ value: 'x' }] })
  },
  read: (brokers, topic) => subscribe(brokers, topic, `allowed-${topic}`),
  join: (brokers, group) => subscribe(brokers, 'allowed-seen', group),
  create: (brokers, topic) => administer(brokers, one => one.createTopics({ topics: [{ topic }] })),
  delete: (brokers, topic) => administer(brokers, one => one.deleteTopics({ topics: [topic] })),
  operate: brokers => administer(brokers, one => one.describeAcls(EVERYTHING)),
  login: (brokers, topic) => administer(brokers, one => one.fetchTopicMetadata({ topics: [topic] }))
}

// Tries one thing; prints `done`, or `refused` with the name of the error.
async function attempt (brokers, name, what) {
  try {
    await ATTEMPTS[what](brokers, name)
    console.log('done')
  } catch (error) {
    const causes = [error, ...(error.errors ?? []), error.cause, error.cause?.cause]
    const told = causes.find(one => one?.type)?.type
    console.log(`refused\t${told ?? `${error.name}: ${error.message}`}`)
  }
  process.exit(0)
}

await main({ admin, produce, consume, member, writer, survey, attempt })
