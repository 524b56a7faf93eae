import type { RequestContext } from '../http/request-context.ts'
import type { ApiVersionsKey } from '../api-deps.ts'
import { basePaths } from '../http/paths.ts'
import type { PkiControl } from '../cluster/pki-control.ts'

interface IssuersDeps {
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  readonly pki: PkiControl
}

/**
 * The issuers of this controller, one for each host and port at which clients reach it: the
 * advertised addresses, and every name in its own certificate or another server certificate. A
 * wildcard matches one additional label. A request to any other host has no issuer, so tokens and
 * links never contain a foreign name.
 */
export class Issuers {
  readonly #deps: IssuersDeps

  constructor(deps: IssuersDeps) {
    this.#deps = deps
  }

  /**
   * The issuer URL for the host to which a request was sent; null if the host does not belong to
   * this controller.
   */
  of({ headers }: Pick<RequestContext, 'headers'>): string | null {
    const host = headers['host']?.toLowerCase() ?? ''
    // @guard oidc/authorization--host
    return this.#isOwn(withPort(host)) ? `https://${host}${basePaths.oidc}` : null
  }

  /**
   * Hosts of this controller, each as `host:port`; the console may be at any of them. For a
   * wildcard, the list contains only the name to which the request was sent, because other matching
   * names may belong to other servers.
   */
  hosts(call: Pick<RequestContext, 'headers'>): string[] {
    const issuer = this.of(call)
    const { exact } = this.#names()
    return issuer === null ? exact : [...exact, withPort(new URL(issuer).host)]
  }

  #isOwn(host: string): boolean {
    const { exact, wildcard } = this.#names()
    if (exact.includes(host)) return true
    const [label = ''] = host.split('.', 1)
    return LABEL.test(label) && wildcard.includes(host.slice(label.length))
  }

  /** Exact names as `host:port`, and wildcards as `.host:port`. */
  #names(): { readonly exact: string[]; readonly wildcard: string[] } {
    const { bindings, pki } = this.#deps
    const advertised = Object.values(bindings)
      .flatMap((urls) => urls ?? [])
      .map((url) => new URL(url))
    const ports = new Set(advertised.map(({ port }) => (port === '' ? '443' : port)))
    const { certificates, serverCertificates } = pki.view()
    const [own] = certificates
    const proven = [own, ...serverCertificates.map(({ certificate }) => certificate)]
      .flatMap((certificate) => certificate?.names ?? [])
      // Skips SPIFFE URIs, because they are not host names.
      .filter((name) => !name.includes('/'))
      .map((name) => name.toLowerCase())
    const at = (names: readonly string[]): string[] =>
      names.flatMap((name) => Array.from(ports, (port) => `${name}:${port}`))
    const hosts = proven.filter((name) => !name.includes('*')).map(bracketed)
    const wildcards = proven.filter((name) => WILDCARD.test(name)).map((name) => name.slice(1))
    return {
      exact: [...advertised.map(({ host }) => withPort(host)), ...at(hosts)],
      wildcard: at(wildcards),
    }
  }
}

/** One label of a host name (RFC 1123). */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const WILDCARD = /^\*(?:\.[a-z0-9-]+){2,}$/

function bracketed(name: string): string {
  return name.includes(':') && !name.startsWith('[') ? `[${name}]` : name
}

function withPort(host: string): string {
  return /:[0-9]+$/.test(host) && !host.endsWith(']') ? host : `${host}:443`
}
