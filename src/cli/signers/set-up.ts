import { CommandFailure, EXIT_FAILED, usageFailure } from '../../controller/command-failure.ts'
import {
  presetFieldNames,
  type PresetFieldName,
  type PresetValues,
  buildSignerBody,
  type SignerPreset,
  signerPreset,
} from '../../client/signer-presets.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { listShape, nullableShape, objectShape, textShape } from '../client/response-shape.ts'
import { kindById } from '../records/kinds.ts'
import { sendRecordCreate } from '../records/write.ts'
import { formatTable, printJson, printLine, printNote } from '../terminal/output.ts'

export interface DiscoverOptions extends ContextOptions, PresetValues {
  readonly provider: string
}

export interface CreateSignerOptions extends DiscoverOptions {
  readonly claim?: string
  readonly dryRun?: boolean
}

interface Discovered {
  readonly issuer: string
  readonly jwksEndpoint: string
  readonly authorizationEndpoint: string | null
  readonly scopes: readonly string[]
  /** Null if the keys could not be fetched. */
  readonly keyIds: readonly string[] | null
  readonly keysFault: string | null
}

const discovered = objectShape<Discovered>({
  issuer: textShape,
  jwksEndpoint: textShape,
  authorizationEndpoint: nullableShape(textShape),
  scopes: listShape(textShape),
  keyIds: nullableShape(listShape(textShape)),
  keysFault: nullableShape(textShape),
})

/**
 * Time limit for the controller's response. The controller makes two requests to the provider, each
 * with its own limit.
 */
const DISCOVERY_TIMEOUT_MS = 30_000

/** Prints the metadata that an identity provider publishes. */
export async function printDiscoveredProvider(options: DiscoverOptions): Promise<void> {
  const { issuer } = providerOf(options, false)
  const found = await readProvider(openContextClient(options), issuer)
  if (options.json === true) {
    printJson(found)
    return
  }
  printLine(
    formatTable(
      ['field', 'value'],
      [
        ['issuer', found.issuer],
        ['jwksEndpoint', found.jwksEndpoint],
        ['authorizationEndpoint', found.authorizationEndpoint ?? '-'],
        ['scopes', found.scopes.join(', ')],
        ['usable keys', String(found.keyIds?.length ?? 0)],
      ],
    ),
  )
  noteKeys(found)
}

/**
 * Creates an external JWT signer from the options and from the metadata that the identity provider
 * publishes.
 */
export async function createSigner(name: string, options: CreateSignerOptions): Promise<void> {
  const { preset, values, issuer } = providerOf(options, true)
  const client = openContextClient(options)
  const found = await readProvider(client, issuer)
  const claim = options.claim ?? preset.claim
  const body = buildSignerBody(preset, values, { name, claim }, found) as JsonObject
  noteKeys(found)
  if (options.dryRun === true) {
    printJson(body)
    printNote('flotilla: nothing was written')
    return
  }
  const label = `external jwt signer ${printableLine(name)}`
  const id = await sendRecordCreate(client, kindById('externalJwtSigner'), body, label)
  if (options.json === true) printJson({ kind: 'external-jwt-signer', id })
  else printLine(`created ${label}, id ${printableLine(id)}`)
}

interface ChosenProvider {
  readonly preset: SignerPreset
  readonly values: PresetValues
  readonly issuer: string
}

/**
 * @throws {CommandFailure} exit 2 if a value is missing or superfluous, or if the values do not
 * form an issuer.
 */
function providerOf(options: DiscoverOptions, needsClient: boolean): ChosenProvider {
  const preset = signerPreset(options.provider)
  if (preset === undefined) throw usageFailure(`no provider is named ${options.provider}`)
  const values = Object.fromEntries(
    presetFieldNames.flatMap((name) =>
      options[name] === undefined ? [] : [[name, options[name]]],
    ),
  ) as PresetValues
  const isNeeded = (name: PresetFieldName): boolean => name !== 'clientId' || needsClient
  const fields = preset.fields.filter(({ name }) => isNeeded(name))
  const missing = fields.filter(({ name, isOptional }) => isOptional !== true && !values[name])
  const unknown = Object.keys(values).filter(
    (name) => !preset.fields.some((one) => one.name === name),
  )
  const [first] = [...missing.map(({ name }) => name), ...unknown]
  if (missing.length > 0) throw usageFailure(`${preset.name} needs ${optionOf(first ?? '')}`)
  if (unknown.length > 0) throw usageFailure(`${preset.name} takes no ${optionOf(first ?? '')}`)
  const issuer = preset.issuerOf(values)
  if (issuer !== null) return { preset, values, issuer }
  throw usageFailure(
    'these values make no issuer: a tenant is a UUID, and an address begins with https://',
  )
}

function optionOf(field: string): string {
  return `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

async function readProvider(client: ApiClient, issuer: string): Promise<Discovered> {
  const { data } = await client.ask(
    {
      method: 'POST',
      path: '/jwt-signer-setup/discover',
      body: { issuer },
      changesNothing: true,
      timeoutMs: DISCOVERY_TIMEOUT_MS,
    },
    discovered,
  )
  // A signer with another issuer would refuse every token of this provider.
  if (data.issuer === issuer) return data
  throw new CommandFailure(EXIT_FAILED, `${client.controller}: unexpected answer: another issuer`)
}

function noteKeys({ keyIds, keysFault }: Discovered): void {
  if (keyIds === null) {
    printNote(`flotilla: warning: the controller cannot fetch the keys: ${keysFault ?? ''}`)
  } else if (keyIds.length === 0) {
    printNote('flotilla: warning: the provider publishes no key that a controller can use')
  }
}
