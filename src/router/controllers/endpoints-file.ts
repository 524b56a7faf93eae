import { existsSync, readFileSync, statSync } from 'node:fs'

import { parseYamlTree, formatYaml, type YamlTree } from '../../config/engine/yaml-tree.ts'
import { isControllerId, isTrustDomain } from '../../lib/text/names.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { writeSecretFile } from '../../pki/secret-file.ts'
import { parseAddress } from '../../config/router/values.ts'
import { controllerLimits } from './limits.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

/** A controller and its addresses. */
export interface KnownController {
  readonly id: string
  /** Each in the form `tls:host:port`. */
  readonly addresses: readonly string[]
  /**
   * Hex SHA-256 of the controller's public key, as a majority reports it; null: any key is
   * accepted.
   */
  readonly keySha256: string | null
  /**
   * IDs of the controllers that list this controller; null for a voter: a majority has listed it,
   * it has responded at a configured address, or it was connected while all voters were absent.
   */
  readonly toldBy: readonly string[] | null
  /**
   * Addresses from the configuration or the enrollment at which this controller has responded.
   * Unlike `addresses`, they do not depend on the lists of controllers.
   */
  readonly answeredAt?: readonly string[]
  /** Addresses of the controller's client API, as a majority lists them: `https://host:port`. */
  readonly apis?: readonly string[]
}

/** A controller's ID and key. */
export interface ControllerKey {
  readonly id: string
  /** Hex SHA-256 of the controller's public key. */
  readonly keySha256: string
}

/** Cluster endpoints that a router retains across restarts. */
export interface KnownEndpoints {
  /**
   * Addresses of controllers without regard to which controller has which address; `controllers`
   * lists them by controller.
   */
  readonly endpoints: readonly string[]
  /** The members by ID; empty until a controller has reported them. */
  readonly controllers: readonly KnownController[]
  /** Removed controllers whose keys are refused, newest last. */
  readonly removed: readonly ControllerKey[]
  /**
   * Addresses of client APIs, `https://host:port`. Those that have extended the router certificates
   * come first, the latest at the front. The list repeats the addresses in `controllers`, because
   * earlier releases read only this list.
   */
  readonly apis: readonly string[]
  /** Trust domain of the controllers' certificates; null until it is known. */
  readonly trustDomain: string | null
}

const SHA256_HEX = /^[0-9a-f]{64}$/

type ReadEndpoints =
  | { readonly kind: 'known'; readonly known: KnownEndpoints }
  | { readonly kind: 'absent' }
  /** Why the file is unusable: a clause for a message, to follow the path of the file. */
  | { readonly kind: 'damaged'; readonly reason: string }

/**
 * Reads the endpoints file. Never throws: if the file is damaged, the router uses its
 * configuration.
 */
export function readEndpoints(path: string): ReadEndpoints {
  if (!existsSync(path)) return { kind: 'absent' }
  try {
    if (statSync(path).size > controllerLimits.endpointsFileBytesMax) {
      return { kind: 'damaged', reason: 'is too large' }
    }
    const parsed = parseYamlTree(decodeText(readFileSync(path)))
    if (!parsed.ok) return { kind: 'damaged', reason: parsed.faults[0]?.problem ?? 'is no YAML' }
    return knownIn(parsed.tree)
  } catch (error) {
    const reason = `cannot be read: ${errorMessage(error)}`
    return { kind: 'damaged', reason }
  }
}

/**
 * Why a router has no controller to dial, as the end of a sentence; null if it has one.
 * @param configured addresses in the configuration.
 */
export function noControllerReason(configured: readonly string[], path: string): string | null {
  if (configured.length > 0) return null
  const read = readEndpoints(path)
  if (read.kind === 'known') return null
  const state = read.kind === 'absent' ? 'does not exist' : read.reason
  return `names no controller, and ${path} ${state}; add ctrl.endpoint, or enroll the router again, which writes that file`
}

/** Writes the file atomically with mode 0600. @throws the file system error. */
export function writeEndpoints(path: string, known: KnownEndpoints): void {
  const { endpoints, controllers, removed, apis, trustDomain } = known
  const text = formatYaml({
    endpoints: [...endpoints],
    controllers: controllers.map(({ id, addresses, keySha256, toldBy, answeredAt, apis: own }) => ({
      id,
      endpoints: addresses.map((address) => ({ address })),
      ...(keySha256 === null ? {} : { keySha256 }),
      ...(toldBy === null ? {} : { toldBy: [...toldBy] }),
      ...(answeredAt === undefined ? {} : { answeredAt: [...answeredAt] }),
      ...(own === undefined || own.length === 0 ? {} : { apis: [...own] }),
    })),
    ...(removed.length === 0
      ? {}
      : { removed: removed.map(({ id, keySha256 }) => ({ id, keySha256 })) }),
    ...(apis.length === 0 ? {} : { apis: [...apis] }),
    ...(trustDomain === null ? {} : { trustDomain }),
  })
  const comment =
    '# Written by the router: the current controllers and their client APIs. If it is lost, the controllers of the configuration send both again.'
  writeSecretFile(path, `${comment}\n${text}`)
}

function knownIn(tree: YamlTree): ReadEndpoints {
  const top = entriesOf(tree)
  if (top === null) return { kind: 'damaged', reason: 'is not a section with endpoints' }
  const endpoints = textsOf(top.get('endpoints')).filter(isControllerAddress)
  const controllers = itemsOf(top.get('controllers')).flatMap(controllerIn)
  if (endpoints.length === 0 && controllers.length === 0) {
    return { kind: 'damaged', reason: 'names no controller' }
  }
  const removed = itemsOf(top.get('removed')).flatMap(removedIn)
  const apis = textsOf(top.get('apis')).filter(isApiOrigin)
  const domain = textOf(top.get('trustDomain'))
  const trustDomain = domain !== null && isTrustDomain(domain) ? domain : null
  return {
    kind: 'known',
    known: limitEndpoints({ endpoints, controllers, removed, apis, trustDomain }),
  }
}

/** Skips entries without a valid ID or without a valid address. */
function controllerIn(tree: YamlTree): KnownController[] {
  const entries = entriesOf(tree)
  const id = textOf(entries?.get('id'))
  if (entries === null || id === null || !isControllerId(id)) return []
  const addresses = itemsOf(entries.get('endpoints')).flatMap((item) => {
    const address = textOf(entriesOf(item)?.get('address'))
    return address !== null && isControllerAddress(address) ? [address] : []
  })
  const keySha256 = keyIn(entries)
  const toldBy = entries.has('toldBy')
    ? textsOf(entries.get('toldBy')).filter(isControllerId)
    : null
  if (addresses.length === 0) return []
  const apis = textsOf(entries.get('apis')).filter(isApiOrigin)
  const known = { id, addresses, keySha256, toldBy, ...(apis.length === 0 ? {} : { apis }) }
  if (!entries.has('answeredAt')) return [known]
  return [{ ...known, answeredAt: textsOf(entries.get('answeredAt')).filter(isControllerAddress) }]
}

function removedIn(tree: YamlTree): ControllerKey[] {
  const entries = entriesOf(tree)
  const id = textOf(entries?.get('id'))
  const keySha256 = entries === null ? null : keyIn(entries)
  return id === null || !isControllerId(id) || keySha256 === null ? [] : [{ id, keySha256 }]
}

function keyIn(entries: ReadonlyMap<string, YamlTree>): string | null {
  const key = textOf(entries.get('keySha256'))
  return key !== null && SHA256_HEX.test(key) ? key : null
}

/** Truncates the lists to their limits, because a controller can send lists of any length. */
export function limitEndpoints(known: KnownEndpoints): KnownEndpoints {
  const {
    controllersMax,
    addressesPerControllerMax,
    apisMax,
    apisPerControllerMax,
    removedControllersMax,
  } = controllerLimits
  return {
    ...known,
    endpoints: known.endpoints.slice(0, controllersMax),
    controllers: known.controllers.slice(0, controllersMax).map((controller) => ({
      ...controller,
      addresses: controller.addresses.slice(0, addressesPerControllerMax),
      toldBy: controller.toldBy?.slice(0, controllersMax) ?? null,
      ...(controller.answeredAt === undefined
        ? {}
        : { answeredAt: controller.answeredAt.slice(0, addressesPerControllerMax) }),
      ...(controller.apis === undefined
        ? {}
        : { apis: controller.apis.slice(0, apisPerControllerMax) }),
    })),
    removed: known.removed.slice(-removedControllersMax),
    apis: known.apis.slice(0, apisMax),
  }
}

export function isControllerAddress(text: string): boolean {
  const address = parseAddress(text)
  return address !== null && address.protocol === 'tls' && address.port !== 0
}

/** Whether the text is the origin of a client API: `https://host:port`. */
export function isApiOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && url.origin === text
}

function entriesOf(tree: YamlTree | undefined): Map<string, YamlTree> | null {
  if (tree?.kind !== 'map') return null
  return new Map(tree.entries.map(({ key, value }) => [key, value]))
}

function itemsOf(tree: YamlTree | undefined): readonly YamlTree[] {
  return tree?.kind === 'list' ? tree.items : []
}

function textOf(tree: YamlTree | undefined): string | null {
  return tree?.kind === 'scalar' && typeof tree.value === 'string' ? tree.value : null
}

function textsOf(tree: YamlTree | undefined): string[] {
  return itemsOf(tree).flatMap((item) => textOf(item) ?? [])
}
