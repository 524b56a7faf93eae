import { existsSync, readFileSync, statSync } from 'node:fs'

import { parseYamlTree, yamlText, type YamlTree } from '../../config/engine/yaml-tree.ts'
import { isControllerId, isTrustDomain } from '../../lib/text/names.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { writeSecretFile } from '../../pki/key-file.ts'
import { parseAddress } from '../../config/router/values.ts'
import { routerProgramLimits } from '../limits.ts'

/** A controller and where it is. */
export interface KnownController {
  readonly id: string
  /** `tls:host:port`, each. */
  readonly addresses: readonly string[]
}

/** Endpoints of the cluster that a router keeps from one start to the next. */
export interface KnownEndpoints {
  /** Addresses of controllers, whoever answers there. */
  readonly endpoints: readonly string[]
  /** The members, by id; empty until a controller has told them. */
  readonly controllers: readonly KnownController[]
  /** Addresses where the client API of controllers was met: `https://host:port`. */
  readonly apis: readonly string[]
  /** Trust domain of the certificates of controllers; null while it is not known. */
  readonly trustDomain: string | null
}

export type ReadEndpoints =
  | { readonly kind: 'known'; readonly known: KnownEndpoints }
  | { readonly kind: 'absent' }
  /** Why it cannot be used: a clause that follows its path. */
  | { readonly kind: 'damaged'; readonly reason: string }

/** Never throws: a router with a damaged file goes on with its configuration. */
export function readEndpoints(path: string): ReadEndpoints {
  if (!existsSync(path)) return { kind: 'absent' }
  try {
    if (statSync(path).size > routerProgramLimits.endpointsFileBytesMax) {
      return { kind: 'damaged', reason: 'is too large' }
    }
    const parsed = parseYamlTree(readFileSync(path, 'utf8'))
    if (!parsed.ok) return { kind: 'damaged', reason: parsed.faults[0]?.problem ?? 'is no YAML' }
    return knownIn(parsed.tree)
  } catch (error) {
    const reason = `cannot be read: ${errorMessage(error)}`
    return { kind: 'damaged', reason }
  }
}

/** Mode 0600, whole or not at all. @throws the file system's error. */
export function writeEndpoints(path: string, known: KnownEndpoints): void {
  const { endpoints, controllers, apis, trustDomain } = known
  const text = yamlText({
    endpoints: [...endpoints],
    controllers: controllers.map(({ id, addresses }) => ({
      id,
      endpoints: addresses.map((address) => ({ address })),
    })),
    ...(apis.length === 0 ? {} : { apis: [...apis] }),
    ...(trustDomain === null ? {} : { trustDomain }),
  })
  const comment =
    '# Written by the router: the current controllers. Delete it to start from the configuration.'
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
  const apis = textsOf(top.get('apis')).filter(isApi)
  const domain = textOf(top.get('trustDomain'))
  const trustDomain = domain !== null && isTrustDomain(domain) ? domain : null
  return {
    kind: 'known',
    known: bounded({ endpoints, controllers, apis, trustDomain }),
  }
}

/** An entry without an id is of no use among those that have one. */
function controllerIn(tree: YamlTree): KnownController[] {
  const entries = entriesOf(tree)
  const id = textOf(entries?.get('id'))
  if (entries === null || id === null || !isControllerId(id)) return []
  const addresses = itemsOf(entries.get('endpoints')).flatMap((item) => {
    const address = textOf(entriesOf(item)?.get('address'))
    return address !== null && isControllerAddress(address) ? [address] : []
  })
  return addresses.length === 0 ? [] : [{ id, addresses }]
}

/**
 * Takes as many as are kept; a list of controllers, whoever sends it, does not decide how long it
 * is.
 */
export function bounded(known: KnownEndpoints): KnownEndpoints {
  const { controllersMax, addressesPerControllerMax, apisMax } = routerProgramLimits
  return {
    ...known,
    endpoints: known.endpoints.slice(0, controllersMax),
    controllers: known.controllers.slice(0, controllersMax).map(({ id, addresses }) => ({
      id,
      addresses: addresses.slice(0, addressesPerControllerMax),
    })),
    apis: known.apis.slice(0, apisMax),
  }
}

export function isControllerAddress(text: string): boolean {
  const address = parseAddress(text)
  return address !== null && address.protocol === 'tls' && address.port !== 0
}

function isApi(text: string): boolean {
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
