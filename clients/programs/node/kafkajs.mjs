// The program of kafkajs.
import { lz4Compress, lz4Decompress, snappyCompress, snappyDecompress } from '@platformatic/wasm-utils'
import kafkajs from 'kafkajs'
import { IDEMPOTENT, PARTITIONS, REPLICAS, RETENTION_MS, asked, main, record, show } from './lines.mjs'

const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, Partitioners, logLevel } = kafkajs
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

function client (brokers) {
  return new Kafka({ brokers, logLevel: logLevel.NOTHING })
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
  const consumer = client(brokers).consumer({ groupId: `alone-${topic}` })
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
    eachMessage: async ({ partition, message }) => {
      print(partition, message)
      const offset = String(BigInt(message.offset) + 1n)
      await consumer.commitOffsets([{ topic, partition, offset }])
    }
  })
  await asked()
  await consumer.disconnect()
}

await main({ admin, produce, consume, member })
