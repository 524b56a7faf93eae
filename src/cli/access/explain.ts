import { CommandFailure, EXIT_USAGE } from '../../controller/command-failure.ts'
import { printableValue } from '../../lib/text/terminal-text.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'
import { explainedPairText, explainedPairLines } from './explanation-text.ts'
import { type ExplainedPair, explainedPairsShape } from './explained-pair.ts'

export interface ExplainOptions extends ContextOptions {
  readonly service?: string
  readonly granted?: boolean
  readonly filter?: string
  readonly limit?: number
}

const PAGE = 100

/**
 * Prints why an identity can or cannot reach a service. If only the identity or only the service is
 * given, prints one line for each pair.
 */
export async function explainPairs(
  identity: string | undefined,
  service: string | undefined,
  options: ExplainOptions,
): Promise<void> {
  if (identity === undefined && service === undefined) {
    throw new CommandFailure(EXIT_USAGE, 'name an identity, a service, or both')
  }
  const isOnePair = identity !== undefined && service !== undefined
  if (isOnePair && (options.granted === true || options.filter !== undefined)) {
    throw new CommandFailure(EXIT_USAGE, '--granted and --filter need one side alone')
  }
  const client = openContextClient(options)
  const { pairs, total } = await pairsOf(client, { identity, service }, options)
  if (options.json === true) {
    printJson(pairs)
    return
  }
  // @guard names-at-a-terminal--explained
  const shown = printableValue(pairs)
  const [first] = shown
  if (isOnePair && first !== undefined) printLine(explainedPairText(first))
  else printLine(explainedPairLines(shown, identity === undefined ? 'identity' : 'service'))
  if (pairs.length < total) printNote(`flotilla: ${pairs.length} of ${total}; --limit shows more`)
}

async function pairsOf(
  client: ApiClient,
  sides: { readonly identity: string | undefined; readonly service: string | undefined },
  { granted, filter, limit = PAGE }: ExplainOptions,
): Promise<{ readonly pairs: readonly ExplainedPair[]; readonly total: number }> {
  const pairs: ExplainedPair[] = []
  for (;;) {
    const query = new URLSearchParams({
      limit: String(Math.min(PAGE, limit - pairs.length)),
      offset: String(pairs.length),
      ...(sides.identity === undefined ? {} : { identity: sides.identity }),
      ...(sides.service === undefined ? {} : { service: sides.service }),
      ...(granted === true ? { granted: 'true' } : {}),
      ...(filter === undefined ? {} : { filter }),
    })
    const path = `/access/explain?${query.toString()}`
    const { data: page, meta } = await client.ask({ method: 'GET', path }, explainedPairsShape)
    pairs.push(...page)
    const total = meta.pagination?.totalCount ?? pairs.length
    if (page.length === 0 || pairs.length >= Math.min(limit, total)) return { pairs, total }
  }
}
