import { parseArgs } from 'node:util'
import type { LeanClient } from './support/lean-client.ts'
import { ClusterOfPeople, client, management } from './support/people.ts'
import { heading, percentile } from './support/report.ts'

// Measures how soon a decision of an administrator takes effect everywhere. The administrator sends
// it to one of three controllers, while the affected identity sends requests to the other two
// without a pause. The report shows, from the acknowledgment and from the request of the
// administrator, the ms until the first refusal of each of the two. A refusal before the
// acknowledgment counts as 0.

interface Decision {
  readonly title: string
  /** Returns the administrator's request that makes the decision about this identity. */
  readonly decide: (id: string) => readonly [method: string, path: string, body: string]
  /**
   * The path that the affected identity requests; the next field has the status codes of a refusal.
   */
  readonly asked: string
  readonly refusals: readonly number[]
}

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '200' } } })
const rounds = Number(options.rounds)
console.log(
  heading(
    `From a decision on one controller to the refusal on the other two; ${rounds} rounds each`,
  ),
)
await using people = await ClusterOfPeople.start()
const decisions = await decisionsOf()
const [admins, subjects] = await Promise.all([connections(), connections()])
for (const decision of decisions) {
  const ids = await people.newIdentities(rounds, (at) => ({
    name: `${decision.title} ${at}`,
    roleAttributes: ['subjects'],
  }))
  const tokens = await people.sessionsOf(ids)
  const fromRequest: number[] = []
  const fromAnswer: number[] = []
  for (const [at, id] of ids.entries()) {
    const seen = await decided(decision, id, tokens[at] ?? '', at % 3)
    fromRequest.push(...seen.fromRequest)
    fromAnswer.push(...seen.fromAnswer)
  }
  const show = (values: number[]): string =>
    [0.5, 0.99, 1].map((part) => percentile(values, part).toFixed(1).padStart(6)).join(' / ')
  const early = fromAnswer.filter((ms) => ms === 0).length
  console.log(
    `${decision.title.padEnd(34)} after the answer ${show(fromAnswer)} ms   after the request ${show(fromRequest)} ms   ` +
      `p50 / p99 / max; ${early} of ${fromAnswer.length} came before the answer`,
  )
}
for (const one of [...admins, ...subjects]) one.close()

function connections(): Promise<LeanClient[]> {
  return Promise.all([1, 2, 3].map((k) => people.connect(k)))
}

/**
 * Measures one decision: the controller at this index gets the change, and the other two are
 * polled.
 */
async function decided(
  { decide, asked, refusals }: Decision,
  id: string,
  token: string,
  at: number,
): Promise<{ fromRequest: number[]; fromAnswer: number[] }> {
  const others = subjects.filter((_, other) => other !== at)
  for (const one of others) {
    const before = await one.request('GET', asked, token)
    if (before.status !== 200) throw new Error(`before the decision: ${before.body}`)
  }
  const refusedAt = others.map(async (one) => {
    for (;;) {
      const { status, body } = await one.request('GET', asked, token)
      if (refusals.includes(status)) return performance.now()
      if (status !== 200) throw new Error(body)
    }
  })
  const [method, path, body] = decide(id)
  const begunAt = performance.now()
  const answer = await admins[at]?.request(method, path, people.rootToken, body)
  const answeredAt = performance.now()
  if (answer?.status !== 200) throw new Error(answer?.body)
  const seen = await Promise.all(refusedAt)
  return {
    fromRequest: seen.map((ms) => ms - begunAt),
    fromAnswer: seen.map((ms) => Math.max(0, ms - answeredAt)),
  }
}

async function decisionsOf(): Promise<Decision[]> {
  const policy = await shown(`${management}/auth-policies/default`)
  const { primary } = (JSON.parse(policy) as { data: { primary: object } }).data
  const strict = await people.make('auth-policies', {
    name: 'a code as well',
    primary,
    secondary: { requireTotp: true },
  })
  const serviceId = await people.make('services', { name: 'wiki', encryptionRequired: true })
  await people.make('service-policies', {
    name: 'wiki',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#subjects'],
    serviceRoles: [`@${serviceId}`],
  })
  const own = { asked: `${client}/current-identity`, refusals: [401] }
  const path = (id: string): string => `${management}/identities/${id}`
  return [
    { title: 'identity deleted', decide: (id) => ['DELETE', path(id), ''], ...own },
    {
      title: 'identity disabled',
      decide: (id) => ['POST', `${path(id)}/disable`, '{"durationMinutes":0}'],
      ...own,
    },
    {
      title: 'auth policy asks for a code',
      decide: (id) => ['PATCH', path(id), JSON.stringify({ authPolicyId: strict })],
      ...own,
    },
    {
      title: 'service policy leads there no more',
      decide: (id) => ['PATCH', path(id), '{"roleAttributes":[]}'],
      asked: `${client}/services/${serviceId}`,
      refusals: [404],
    },
  ]
}

async function shown(path: string): Promise<string> {
  const one = await people.connect(1)
  const { body } = await one.request('GET', path, people.rootToken)
  one.close()
  return body
}
