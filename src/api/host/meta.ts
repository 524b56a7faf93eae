import { capabilitySchema, protocolsSchema, versionSchema } from '../schemas/about.ts'
import { detailResponse, listResponse, type Reply } from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import type { ApiVersionsKey, VersionInfo } from '../api-deps.ts'
import { basePaths } from '../http/paths.ts'
import { OIDC_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import type { StateView } from '../../ports/state-view.ts'
import { routerCapabilities } from '../../lib/router-capabilities.ts'

interface MetaOperationsDeps {
  readonly state: Pick<StateView, 'featureLevel'>
  readonly version: VersionInfo
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
}

/**
 * All capabilities that OpenZiti defines; the version response lists at most
 * `announcedCapabilities`.
 */
const knownCapabilities = ['OIDC_AUTH', 'HA_CONTROLLER', 'OIDC_AUTH_WITH_CSR']
/**
 * Capabilities in the version response. Clients rely on them, so none is listed until the feature
 * level shows that every member supports OIDC, and `OIDC_AUTH` only if this controller serves the
 * OpenID provider. `OIDC_AUTH_WITH_CSR` works but is not listed: the JVM SDK from 0.30 on refuses a
 * controller with an unknown capability, and no SDK uses `OIDC_AUTH_WITH_CSR`.
 */
const announcedCapabilities: readonly string[] = ['OIDC_AUTH', 'HA_CONTROLLER']

const bindingPaths: Readonly<Record<ApiVersionsKey, string>> = {
  'edge-client': basePaths.client,
  'edge-management': basePaths.management,
  fabric: basePaths.fabric,
  'health-checks': '/health-checks/v1',
  'edge-oidc': basePaths.oidc,
}

/**
 * Operations that need no session, and whose responses hardly change while a controller runs. Each
 * response is created once and cached.
 */
export function staticInfoOperations(deps: MetaOperationsDeps): Operation[] {
  const before = detailResponse(versionOf(deps, false, []))
  const isServed = deps.bindings['edge-oidc'] !== undefined
  const without = announcedCapabilities.filter((name) => !name.startsWith('OIDC'))
  const since = detailResponse(
    versionOf(deps, isServed, isServed ? announcedCapabilities : without),
  )
  const versionAnswer = (): Reply => (deps.state.featureLevel < OIDC_FEATURE_LEVEL ? before : since)
  const capabilities = wholeAnswer(knownCapabilities)
  const ofRouters = wholeAnswer(routerCapabilities)
  const common = {
    tag: 'informational',
    method: 'GET',
    permission: 'public',
    success: 200,
  } as const
  return [
    {
      ...common,
      operationId: 'listRoot',
      summary: 'Show version, addresses and capabilities of this controller',
      apis: ['client', 'management', 'fabric'],
      path: '/',
      response: { kind: 'detail', schema: versionSchema },
      handle: versionAnswer,
    },
    {
      ...common,
      operationId: 'listVersion',
      summary: 'Show version, addresses and capabilities of this controller',
      apis: ['client', 'management', 'fabric'],
      path: '/version',
      response: { kind: 'detail', schema: versionSchema },
      handle: versionAnswer,
    },
    {
      ...common,
      operationId: 'listEnumeratedCapabilities',
      summary: 'List all capabilities of the OpenZiti API',
      apis: ['client', 'management'],
      path: '/enumerated-capabilities',
      response: { kind: 'list', schema: capabilitySchema },
      handle: () => capabilities,
    },
    {
      ...common,
      operationId: 'listEnumeratedRouterCapabilities',
      summary: 'List the capabilities that the record of an edge router can contain',
      apis: ['client', 'management'],
      path: '/enumerated-router-capabilities',
      response: { kind: 'list', schema: capabilitySchema },
      handle: () => ofRouters,
    },
    {
      ...common,
      operationId: 'listProtocols',
      summary: 'Show the protocols and addresses of this controller',
      apis: ['client'],
      path: '/protocols',
      response: { kind: 'detail', schema: protocolsSchema },
      refusals: [429],
      handle: protocolsAnswer(deps),
    },
  ]
}

function wholeAnswer(names: readonly string[]): Reply {
  const { length } = names
  return listResponse([...names], { limit: length, offset: 0, totalCount: length }, [])
}

function protocolsAnswer(deps: MetaOperationsDeps): () => Reply {
  const [url] = deps.bindings['edge-client'] ?? []
  const made = detailResponse(url === undefined ? {} : { https: { address: addressOf(url) } })
  return () => made
}

/** host:port; includes the port even if it is the default of the scheme. */
function addressOf(url: string): string {
  const { hostname, port } = new URL(url)
  return `${hostname}:${port === '' ? '443' : port}`
}

function versionOf(
  { bindings, version: info }: MetaOperationsDeps,
  isOidcOffered: boolean,
  capabilities: readonly string[],
): Record<string, unknown> {
  const apiVersions: Record<string, unknown> = {}
  for (const name of Object.keys(bindingPaths) as ApiVersionsKey[]) {
    const urls = bindings[name]
    if (urls === undefined || (name === 'edge-oidc' && !isOidcOffered)) continue
    const path = bindingPaths[name]
    const apiBaseUrls = urls.map((url) => url + path)
    apiVersions[name] = { v1: { apiBaseUrls, path, version: 'v1' } }
  }
  // Also lists the client API under the name `edge`, which older clients expect.
  if (apiVersions['edge-client'] !== undefined) apiVersions['edge'] = apiVersions['edge-client']
  return {
    apiVersions,
    buildDate: info.buildDate,
    capabilities,
    revision: info.revision,
    runtimeVersion: info.runtimeVersion,
    version: info.version,
  }
}
