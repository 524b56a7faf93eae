import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import {
  booleanShape,
  listShape,
  nullableShape,
  objectShape,
  textShape,
} from '../client/response-shape.ts'
import { kindById } from '../records/kinds.ts'
import { RecordNameResolver } from '../records/names.ts'
import { formatTable, printJson, printLine } from '../terminal/output.ts'
import { readSecretInput } from '../terminal/secret-input.ts'

export interface TestTokenOptions extends ContextOptions {
  readonly jwtFile: string
}

interface Named {
  readonly id: string
  readonly name: string
}

interface Check {
  readonly check: string
  readonly state: string
  readonly message: string | null
  readonly claim: string | null
  readonly found: string | null
  readonly expected: string | null
}

interface TokenTestResult {
  readonly logsIn: boolean
  readonly enrolls: boolean
  readonly signer: Named | null
  readonly identity: Named | null
  readonly checks: readonly Check[]
  readonly claimNames: readonly string[]
}

const named = objectShape<Named>({ id: textShape, name: textShape })
const optionalText = nullableShape(textShape)
const result = objectShape<TokenTestResult>({
  logsIn: booleanShape,
  enrolls: booleanShape,
  signer: nullableShape(named),
  identity: nullableShape(named),
  checks: listShape(
    objectShape<Check>({
      check: textShape,
      state: textShape,
      message: optionalText,
      claim: optionalText,
      found: optionalText,
      expected: optionalText,
    }),
  ),
  claimNames: listShape(textShape),
})

/**
 * Time limit for the test; the controller may first have to fetch the keys of the identity
 * provider.
 */
const TEST_TIMEOUT_MS = 20_000

/**
 * Prints each check that a log-in with the token would go through.
 * @throws {CommandFailure} exit 1 if the token does not permit a log-in.
 */
export async function runTokenTest(
  signer: string | undefined,
  options: TestTokenOptions,
): Promise<void> {
  const token = readSecretInput(options.jwtFile, 'the token')
  const tested = await askForTest(openContextClient(options), token, signer)
  if (options.json === true) printJson(tested)
  else printLine(resultText(tested))
  if (tested.logsIn) return
  const failed = tested.checks.find(({ state }) => state === 'failed')
  const reason = printableLine(failed?.message ?? 'no check failed')
  const enrolls = tested.enrolls ? '; it can enroll a new identity' : ''
  throw new CommandFailure(EXIT_FAILED, `the token does not log in: ${reason}${enrolls}`)
}

async function askForTest(
  client: ApiClient,
  token: string,
  signer: string | undefined,
): Promise<TokenTestResult> {
  const kind = kindById('externalJwtSigner')
  const given =
    signer === undefined
      ? {}
      : { signerId: await new RecordNameResolver(client).idOf(kind, signer) }
  const { data } = await client.ask(
    {
      method: 'POST',
      path: '/jwt-signer-setup/test',
      body: { token, ...given },
      changesNothing: true,
      timeoutMs: TEST_TIMEOUT_MS,
    },
    result,
  )
  return data
}

function resultText({ checks, signer, identity, logsIn, claimNames }: TokenTestResult): string {
  const rows = checks.map(({ check, state, claim, found, expected }) => [
    check,
    state,
    claim ?? '-',
    found ?? '-',
    expected ?? '-',
  ])
  return [
    formatTable(['check', 'result', 'claim', 'token', 'signer'], rows),
    `signer: ${printableLine(signer?.name ?? '-')}`,
    `identity: ${printableLine(identity?.name ?? '-')}`,
    `claims in the token: ${printableLine(claimNames.join(', ') || '-')}`,
    ...(logsIn ? ['the token logs in'] : []),
  ].join('\n')
}
