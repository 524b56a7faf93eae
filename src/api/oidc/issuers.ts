import type { RequestContext } from '../http/call.ts'
import type { BindingName } from '../parts.ts'
import { basePaths } from '../http/paths.ts'
import type { PkiControl } from '../cluster/pki-control.ts'

interface IssuersDeps {
  readonly bindings: Readonly<Partial<Record<BindingName, readonly string[]>>>
  readonly pki: PkiControl
}

/**
 * The issuers of this controller: one for each host and port that its clients reach it by, which
 * are the advertised addresses and the names of its server certificates. Another host leads to no
 * issuer, so that no foreign name gets into a token or a link.
 */
export class Issuers {
  readonly #deps: IssuersDeps

  constructor(deps: IssuersDeps) {
    this.#deps = deps
  }

  /** The issuer that a request was sent to, without a path behind it; null: none of ours. */
  of({ headers }: RequestContext): string | null {
    const host = headers['host']?.toLowerCase() ?? ''
    // @guard oidc/authorization--host
    return this.hosts().includes(withPort(host)) ? `https://${host}${basePaths.oidc}` : null
  }

  /** Each as `host:port`. */
  hosts(): string[] {
    const { bindings, pki } = this.#deps
    const advertised = Object.values(bindings)
      .flatMap((urls) => urls ?? [])
      .map((url) => new URL(url))
    const ports = new Set(advertised.map(({ port }) => (port === '' ? '443' : port)))
    const names = pki
      .view()
      .serverCertificates.flatMap(({ certificate }) => certificate?.names ?? [])
      .filter((name) => !name.includes('*'))
      .map((name) =>
        name.includes(':') && !name.startsWith('[') ? `[${name}]` : name.toLowerCase(),
      )
    const ofNames = names.flatMap((name) => Array.from(ports, (port) => `${name}:${port}`))
    return [...advertised.map(({ host }) => withPort(host)), ...ofNames]
  }
}

function withPort(host: string): string {
  return /:[0-9]+$/.test(host) && !host.endsWith(']') ? host : `${host}:443`
}
