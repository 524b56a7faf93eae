import { parseArgs } from 'node:util'
import { Problem } from '../../src/lib/problems.ts'
import { seededRandom } from '../../src/lib/random.ts'
import type { ListQuery } from '../../src/ports/state-view.ts'
import { Drawer } from './query-twin/draw.ts'
import { type Asked, type Found, Twin } from './query-twin/meaning.ts'
import { Network } from './query-twin/network.ts'
import { Renderer } from './query-twin/render.ts'

const USAGE = `Asks random queries of random networks, of the controller's own lists and of a slow twin that knows
neither its parser nor its indexes: both must find the same.

  node test/fsm/query-campaign.ts [--rounds N] [--seed N] [--seconds N]

Each round is another query (10000 from seed 1); a network serves 20 of them and changes in between. The first difference
is printed with its seed and round. Exit status: 0 all the same, 1 something differed, 2 wrong usage.`

const QUERIES_A_NETWORK = 20

export interface Campaign {
  readonly rounds: number
  readonly seed: number
  /**
   * The campaign ends after the round in which this time is over, but not before `roundsMin`
   * rounds.
   */
  readonly msMax?: number
  readonly roundsMin?: number
}

export interface Tally {
  readonly rounds: number
  readonly networks: number
  /** Number of queries that found some records and not all. */
  readonly telling: number
  readonly difference: string | null
}

function differenceOf(
  network: Network,
  asked: Asked,
  query: ListQuery,
  policy: string | null,
): Found | string {
  const meant = new Twin(network).list(asked)
  let found: Found
  try {
    const result =
      policy === null ? network.list(asked.kind, query) : network.servicesOf(policy, query)
    if (result === null) return 'the parent is not there'
    const { records, totalCount, limit, offset } = result
    found = { ids: records.map(({ id }) => id), totalCount, limit, offset }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return `it was refused: ${error.code} ${error.detail ?? ''}`
  }
  const [theirs, ours] = [JSON.stringify(meant), JSON.stringify(found)]
  return theirs === ours ? meant : `the twin finds ${theirs}\nand not         ${ours}`
}

export function runCampaign({ rounds, seed, msMax = Infinity, roundsMin = 0 }: Campaign): Tally {
  const startedMs = performance.now()
  const random = seededRandom(seed)
  const renderer = new Renderer(random)
  let network = new Network(random)
  let [networks, telling] = [1, 0]
  for (let round = 1; round <= rounds; round += 1) {
    if (round > roundsMin && performance.now() - startedMs > msMax) {
      return { rounds: round - 1, networks, telling, difference: null }
    }
    if (round % QUERIES_A_NETWORK === 0) {
      network = new Network(random)
      networks += 1
    } else if (round % 4 === 0) network.change()
    const asked = new Drawer(random, network).query()
    const { parameters } = asked
    const policy = asked.within === null ? null : (network.records('servicePolicy')[0]?.id ?? null)
    const isSilent = asked.row === null && asked.sort.length + Number(asked.skip !== null) === 0
    const query: ListQuery = {
      ...(isSilent && asked.limit === null ? {} : { filter: renderer.query(asked) }),
      ...(parameters.sort.length === 0 ? {} : { sort: renderer.sortFields(parameters.sort) }),
      ...(parameters.limit === null ? {} : { limit: parameters.limit }),
      ...(parameters.offset === null ? {} : { offset: parameters.offset }),
      ...(parameters.roleFilter.length === 0 ? {} : { roleFilter: parameters.roleFilter }),
      ...(parameters.roleSemantic === null ? {} : { roleSemantic: parameters.roleSemantic }),
    }
    const outcome = differenceOf(network, asked, query, policy)
    if (typeof outcome === 'string') {
      const what = `${asked.kind}${policy === null ? '' : ` of policy ${policy}`} ${JSON.stringify(query)}`
      const difference = `seed ${seed}, round ${round}: ${what}\n${outcome}`
      return { rounds: round, networks, telling, difference }
    }
    const all = network.records(asked.kind).length
    if (outcome.totalCount > 0 && outcome.totalCount < all) telling += 1
  }
  return { rounds, networks, telling, difference: null }
}

function main(): void {
  const number = (name: string, text: string | undefined, otherwise: number): number => {
    const value = text === undefined ? otherwise : Number(text)
    if (Number.isSafeInteger(value) && value >= 0) return value
    console.error(`--${name} takes a number, not ${String(text)}\n\n${USAGE}`)
    process.exit(2)
  }
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string' },
      seed: { type: 'string' },
      seconds: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    console.log(USAGE)
    return
  }
  const startedMs = performance.now()
  const { rounds, networks, telling, difference } = runCampaign({
    rounds: number('rounds', values.rounds, 10_000),
    seed: number('seed', values.seed, 1),
    ...(values.seconds === undefined ? {} : { msMax: number('seconds', values.seconds, 0) * 1000 }),
  })
  if (difference !== null) {
    console.log(difference)
    process.exitCode = 1
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
  console.log(
    `${rounds} queries of ${networks} networks in ${seconds} s; ${telling} found some but not all`,
  )
}

if (import.meta.main) main()
