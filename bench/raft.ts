import { parseArgs } from 'node:util'

import { type Loaded, RaftCluster } from './support/raft-cluster.ts'
import { heading, spread } from './support/report.ts'

// Measures the Raft engine without the state machine of a controller: three processes on this
// machine, each with its threads, logs on disk with one sync for each batch, and mutual TLS between
// them. Proposers run in the leader's process; a commit counts when the entry is applied there.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    proposers: { type: 'string', default: '1,8,64,256' },
    bytes: { type: 'string', default: '300' },
    dir: { type: 'string', default: '.' },
  },
})
const seconds = Number(values.seconds)
const rounds = Number(values.rounds)
const payloadBytes = Number(values.bytes)

console.log(
  heading(`raft: ${rounds} rounds of ${seconds} s, ${payloadBytes} B commands, 3 processes`),
)
console.log('min / median / max of the rounds')
const cluster = await RaftCluster.start(values.dir, 3)
try {
  await cluster.load(64, Math.min(2, seconds), payloadBytes)
  for (const proposers of values.proposers.split(',').map(Number)) {
    const results: Loaded[] = []
    for (let round = 0; round < rounds; round += 1) {
      results.push(await cluster.load(proposers, seconds, payloadBytes))
    }
    const rates = spread(results.map(({ commits, seconds: took }) => commits / took))
    const p50 = spread(
      results.map(({ p50Ms }) => p50Ms),
      2,
    )
    const p99 = spread(
      results.map(({ p99Ms }) => p99Ms),
      2,
    )
    console.log(`${proposers} proposers: ${rates} commits/s, p50 ${p50} ms, p99 ${p99} ms`)
  }
} finally {
  await cluster.stop()
}
