import { sign, verify } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { TestCluster } from '../test/process/support/cluster.ts'
import {
  ecKey,
  jwkOf,
  KeyServer,
  type ProviderKey,
  rsaKey,
  TestProvider,
} from '../test/support/identity-provider.ts'
import { LeanClient } from './support/lean-client.ts'
import { heading, spread } from './support/report.ts'

// Measures the cost of tokens from identity providers: log-ins per second, each with a new token,
// compared with the plain check of such a signature on one core; and requests per second of a
// session without a second factor, with the same token each time, and with a new token each time.
// One of three controllers responds, over TLS.

const CONNECTIONS = 16
/** Several identities, because one identity may have at most 1,000 sessions. */
const IDENTITIES = 64
const API = '/edge/management/v1'
const OWN = '/edge/client/v1/current-identity'
const LOG_IN = '/edge/client/v1/authenticate?method=ext-jwt'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)

console.log(
  heading(
    'Tokens of identity providers, a second; min / median / max over rounds, three controllers',
  ),
)

const keys: readonly (readonly [string, ProviderKey])[] = [
  ['ES256', ecKey('es256')],
  ['RS256', rsaKey('rs256')],
]
const server = await KeyServer.open(keys.map(([, key]) => jwkOf(key)))
const folder = await mkdtemp(join(tmpdir(), 'flotilla-bench-'))
const signerCa = join(folder, 'ca.pem')
writeFileSync(signerCa, server.caPem)
const cluster = await TestCluster.start({
  hasCalmElections: false,
  env: { FLOTILLA_API_RESERVED_SIGNER_HOSTS: 'true', FLOTILLA_API_SIGNER_CA: signerCa },
})
try {
  await main()
} finally {
  await cluster[Symbol.asyncDispose]()
  await server.close()
  await rm(folder, { recursive: true })
}

async function main(): Promise<void> {
  const root = await cluster.loggedIn(1)
  const make = async (kind: string, body: object): Promise<string> => {
    const answer = await root.request('POST', `${API}/${kind}`, { body })
    if (answer.status !== 201) throw new Error(answer.text)
    return (answer.body.data as { id: string }).id
  }
  const provider = new TestProvider('https://idp.test', 'bench')
  const { issuer, audience } = provider
  const signerId = await make('external-jwt-signers', {
    name: 'idp',
    issuer,
    audience,
    enabled: true,
    jwksEndpoint: server.url,
  })
  const { body } = await root.request('GET', `${API}/auth-policies/default`)
  const { primary } = body.data as { primary: object }
  const authPolicyId = await make('auth-policies', {
    name: 'two factors',
    primary,
    secondary: { requireTotp: false, requireExtJwtSigner: signerId },
  })
  const ids: string[] = []
  for (let at = 0; at < IDENTITIES; at += 1) {
    ids.push(await make('identities', { name: `user ${at}`, type: 'User', isAdmin: false }))
  }
  const two = { name: 'two factors', type: 'User', isAdmin: false, authPolicyId }
  const twoId = await make('identities', two)

  let serial = 0
  /** Creates tokens of which no two are equal. */
  const newTokens = (key: ProviderKey, count: number, of: readonly string[]): Promise<string[]> =>
    Promise.all(
      Array.from({ length: count }, (_, at) => {
        serial += 1
        return provider.token(of[at % of.length] ?? '', { key, claims: { jti: `${serial}` } })
      }),
    )

  const { admin } = cluster
  const url = admin.controllers[0] ?? ''
  const clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => LeanClient.connect(url, admin.ca)),
  )
  const bearer = (token: string): string => `authorization: Bearer ${token}\r\n`
  /** Requests per second; `tokens` is the maximum number of requests. */
  const rateOf = async (
    ask: (client: LeanClient, at: number) => Promise<{ readonly status: number }>,
    max = Infinity,
  ): Promise<number> => {
    const from = performance.now()
    const until = from + seconds * 1000
    let next = 0
    await Promise.all(
      clients.map(async (client) => {
        while (performance.now() < until && next < max) {
          const { status } = await ask(client, next++)
          if (status !== 200) throw new Error(`status ${status}`)
        }
      }),
    )
    return (next * 1000) / (performance.now() - from)
  }

  for (const [name, key] of keys) {
    const bare: number[] = []
    const logIns: number[] = []
    for (let round = 0; round < rounds; round += 1) {
      bare.push(bareChecks(key))
      const tokens = await newTokens(key, 2000 * seconds, ids)
      logIns.push(
        await rateOf((client, at) => {
          return client.request('POST', LOG_IN, null, '{}', bearer(tokens[at] ?? ''))
        }, tokens.length),
      )
    }
    console.log(`${name}: bare checks of a signature   ${spread(bare)}`)
    console.log(`${name}: log-ins by a new token       ${spread(logIns)}`)
  }

  const sessionOf = async (id: string): Promise<string> => {
    const token = await provider.token(id, { key: keys[0]?.[1] ?? provider.key })
    const { headers } = await cluster.client(1).request('POST', LOG_IN, {
      body: {},
      headers: { authorization: `Bearer ${token}` },
    })
    return String(headers['zt-session'])
  }
  const [plain, partial] = [await sessionOf(ids[0] ?? ''), await sessionOf(twoId)]
  const [, key] = keys[0] ?? ['', provider.key]
  const figures = { without: [] as number[], same: [] as number[], fresh: [] as number[] }
  for (let round = 0; round < rounds; round += 1) {
    figures.without.push(await rateOf((client) => client.request('GET', OWN, plain)))
    const [same = ''] = await newTokens(key, 1, [twoId])
    figures.same.push(
      await rateOf((client) => client.request('GET', OWN, partial, '', bearer(same))),
    )
    const tokens = await newTokens(key, 5000 * seconds, [twoId])
    figures.fresh.push(
      await rateOf((client, at) => {
        return client.request('GET', OWN, partial, '', bearer(tokens[at] ?? ''))
      }, tokens.length),
    )
  }
  console.log(`requests of a session without a second factor  ${spread(figures.without)}`)
  console.log(`… with the same token in each                  ${spread(figures.same)}`)
  console.log(`… with a new token in each                     ${spread(figures.fresh)}`)
  for (const client of clients) client.close()
}

function bareChecks({ privateKey, publicKey }: ProviderKey): number {
  const input = Buffer.alloc(300, 'x')
  const signature = sign('sha256', input, { key: privateKey, dsaEncoding: 'ieee-p1363' })
  const from = performance.now()
  const until = from + seconds * 1000
  let done = 0
  while (performance.now() < until) {
    const isGood = verify('sha256', input, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
    if (!isGood) throw new Error('a signature is not good')
    done += 1
  }
  return (done * 1000) / (performance.now() - from)
}
