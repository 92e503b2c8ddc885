// The program of @platformatic/kafka.
import { Admin, Consumer, MessagesStreamModes, Producer } from '@platformatic/kafka'
import { IDEMPOTENT, PARTITIONS, REPLICAS, RETENTION_MS, asked, main, record, show } from './lines.mjs'

const TOPIC = 2
const SET = 0
const utf8 = text => text == null ? undefined : Buffer.from(text)
const text = bytes => bytes == null ? null : bytes.toString()
const serializers = { key: utf8, value: utf8, headerKey: utf8, headerValue: utf8 }
const deserializers = { key: text, value: text, headerKey: text, headerValue: text }

async function admin (bootstrapBrokers, topic) {
  const one = new Admin({ clientId: 'admin', bootstrapBrokers })
  const topics = [topic, `${topic}-gone`]
  await one.createTopics({ topics, partitions: PARTITIONS, replicas: REPLICAS })
  const resource = { resourceType: TOPIC, resourceName: topic }
  const configs = [{ name: 'retention.ms', value: RETENTION_MS, configOperation: SET }]
  await one.incrementalAlterConfigs({ resources: [{ ...resource, configs }] })
  let retention = ''
  while (retention !== RETENTION_MS) { // a broker may hear of the change a moment later
    const wanted = { ...resource, configurationKeys: ['retention.ms'] }
    const described = await one.describeConfigs({ resources: [wanted] })
    retention = described[0].configs[0].value
  }
  const found = await one.metadata({ topics: [topic] })
  console.log(`partitions\t${found.topics.get(topic).partitions.length}\nretention.ms\t${retention}`)
  await one.deleteTopics({ topics: [`${topic}-gone`] })
  await one.close()
}

async function produce (bootstrapBrokers, topic, count, ...kinds) {
  for (const kind of kinds) {
    const idempotent = kind === IDEMPOTENT
    const compression = idempotent ? 'none' : kind
    const producer = new Producer({ clientId: 'p', bootstrapBrokers, serializers, idempotent })
    const messages = Array.from({ length: Number(count) }, (_, n) => {
      return { ...record(n), topic: `${topic}-${kind}` }
    })
    await producer.send({ messages, compression, acks: -1 })
    await producer.close()
  }
}

function print ({ partition, offset, key, value, headers }) {
  show(partition, offset, key, value, [...headers])
}

// Its consumers belong to a group; from the beginning, without a commit.
async function consume (bootstrapBrokers, topic, count) {
  const groupId = `alone-${topic}`
  const consumer = new Consumer({ clientId: 'c', groupId, bootstrapBrokers, deserializers })
  const stream = await consumer.consume({
    topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: false, maxWaitTime: 200
  })
  let left = Number(count)
  for await (const message of stream) {
    print(message)
    if (--left === 0) break
  }
  await consumer.close(true)
}

async function member (bootstrapBrokers, topic, groupId) {
  const consumer = new Consumer({
    clientId: 'm', groupId, bootstrapBrokers, deserializers, heartbeatInterval: 500
  })
  const stream = await consumer.consume({
    topics: [topic],
    mode: MessagesStreamModes.COMMITTED,
    fallbackMode: 'earliest',
    autocommit: false,
    maxWaitTime: 200
  })
  let committing = Promise.resolve()
  stream.on('data', message => {
    print(message)
    committing = committing.then(() => message.commit())
  })
  await asked()
  await committing
  await consumer.close(true)
}

await main({ admin, produce, consume, member })
