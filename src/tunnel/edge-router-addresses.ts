import { type HostPort, parseHostPort } from '../lib/text/names.ts'
import { objectOrEmpty, readRecords, readTextField } from './controller-api.ts'
import { tunnelLimits } from './limits.ts'

/** An edge router that the identity may use, with its addresses for clients. */
export interface UsableEdgeRouter {
  readonly name: string
  readonly addresses: readonly HostPort[]
}

/**
 * @param shown edge routers from a client API response; disabled ones and those without a name or a
 * TLS address are dropped.
 */
export function readEdgeRouters(shown: unknown): readonly UsableEdgeRouter[] {
  return readRecords(shown)
    .filter((router) => router['disabled'] !== true)
    .map((router) => ({
      name: readTextField(router, 'name'),
      addresses: addressesIn({ ...objectOrEmpty(router['supportedProtocols']) }),
    }))
    .filter(({ name, addresses }) => name !== '' && addresses.length > 0)
    .slice(0, tunnelLimits.edgeRoutersMax)
}

/**
 * The addresses in an object such as `{"tls": "tls://host:port"}`; ignores protocols other than
 * TLS.
 */
function addressesIn(protocols: Readonly<Record<string, unknown>>): readonly HostPort[] {
  return Object.entries(protocols)
    .flatMap(([protocol, text]) => {
      const place = typeof text === 'string' ? /^(?:tls:(?:\/\/)?)?([^/]+)\/?$/.exec(text) : null
      const parsed = place?.[1] === undefined ? null : parseHostPort(place[1])
      return protocol === 'tls' && parsed !== null ? [parsed] : []
    })
    .slice(0, tunnelLimits.addressesPerRouterMax)
}

/**
 * @param shown controllers from a client API response.
 * @returns the origins of their client APIs, such as `https://host:port`, without duplicates.
 */
export function readControllerOrigins(shown: unknown): readonly string[] {
  const urls = readRecords(shown).flatMap((controller) =>
    readRecords(objectOrEmpty(controller['apiAddresses'])['edge-client']).map((one) =>
      readTextField(one, 'url'),
    ),
  )
  const origins = urls.flatMap((text) => {
    const url = URL.parse(text)
    return url?.protocol === 'https:' ? [url.origin] : []
  })
  return [...new Set(origins)].slice(0, tunnelLimits.controllersMax)
}
