import { once } from 'node:events'
import { request } from 'node:https'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { TestCluster } from '../test/process/support/cluster.ts'
import { LeanClient } from './support/lean-client.ts'
import { load, type Run } from './support/load.ts'
import { processorMs } from './support/processor-time.ts'
import { heading, percentile } from './support/report.ts'

// Compares responses with and without compression, from one controller on loopback: a single
// record, a list of 1, and lists of 100 services and identities. The clients do not decompress.
// Each round measures all encodings, so that other load on the machine affects them equally. `node
// bench/compression.ts`

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
const MANAGEMENT = '/edge/management/v1'
const CLIENTS = 8
const codings = ['', 'gzip', 'br'] as const

console.log(heading('Answers with and without compression; medians over rounds'))
await using cluster = await TestCluster.start({ nodes: 1, hasCalmElections: false })
const { admin } = cluster
const url = admin.controllers[0] ?? ''
const { token } = await cluster.loggedIn(1)
const pid = cluster.pid(1) ?? 0
const clients = await Promise.all(
  Array.from({ length: CLIENTS }, () => LeanClient.connect(url, admin.ca)),
)

async function create(path: string, body: object): Promise<string> {
  const answer = await clients[0]?.request(
    'POST',
    `${MANAGEMENT}${path}`,
    token,
    JSON.stringify(body),
  )
  const { data } = JSON.parse(answer?.body ?? '{}') as { readonly data?: { readonly id: string } }
  if (data === undefined) throw new Error(`cannot create: ${answer?.body}`)
  return data.id
}

let id = ''
for (let at = 0; at < 100; at += 1) {
  const roleAttributes = ['staff', `team-${at % 7}`]
  id = await create('/services', {
    name: `service-${at}`,
    encryptionRequired: true,
    roleAttributes,
  })
  await create('/identities', {
    name: `laptop-${at}`,
    type: 'Device',
    isAdmin: false,
    roleAttributes,
  })
}

/** Number of bytes of the response body on the wire. */
async function sentBytes(path: string, coding: string): Promise<number> {
  const headers = {
    'net-session': token ?? '',
    ...(coding === '' ? {} : { 'accept-encoding': coding }),
  }
  const asked = request(`${url}${MANAGEMENT}${path}`, { headers, ca: readFileSync(admin.ca) }).end()
  const [answer] = (await once(asked, 'response')) as [NodeJS.ReadableStream]
  let bytes = 0
  for await (const chunk of answer) bytes += (chunk as Buffer).length
  return bytes
}

interface Figures {
  readonly runs: Run[]
  ms: number
}

for (const [title, path] of [
  ['a service by id', `/services/${id}`],
  ['a list of 1', '/services?limit=1'],
  ['a list of 100 services', '/services?limit=100'],
  [
    'a list of 100 identities',
    `/identities?limit=100&filter=${encodeURIComponent('not isAdmin = true')}`,
  ],
] as const) {
  const figures = new Map<string, Figures>(codings.map((coding) => [coding, { runs: [], ms: 0 }]))
  for (let round = -1; round < rounds; round += 1) {
    for (const [coding, figure] of figures) {
      const extra = coding === '' ? '' : `accept-encoding: ${coding}\r\n`
      const before = processorMs(pid)
      const run = await load(
        clients,
        async (client) =>
          (await client.request('GET', `${MANAGEMENT}${path}`, token, '', extra)).status,
        seconds,
      )
      // The first round is only for warming up.
      if (round < 0) continue
      figure.runs.push(run)
      figure.ms += processorMs(pid) - before
    }
  }
  for (const [coding, { runs, ms }] of figures) {
    const requests = runs.reduce((sum, run) => sum + run.requests, 0)
    const median = (of: (run: Run) => number): number => percentile(runs.map(of), 0.5)
    console.log(
      `${title.padEnd(26)} ${(coding || 'none').padEnd(5)} ${String(await sentBytes(path, coding)).padStart(7)} bytes  ` +
        `${median(({ perSecond }) => perSecond)
          .toFixed(0)
          .padStart(6)} /s  p50 ${median(({ p50 }) => p50).toFixed(2)} ms  ` +
        `processor time ${(ms / requests).toFixed(3)} ms`,
    )
  }
}
for (const client of clients) client.close()
