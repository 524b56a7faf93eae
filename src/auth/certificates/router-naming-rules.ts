import { Problem } from '../../lib/problems.ts'
import { normalizeHost, isLoopbackHost } from '../../pki/authority/router-names.ts'
import type {
  CertificateIssuer,
  RouterCertificatePair,
  RouterCertifier,
  RouterHostRules,
  RouterRequestPair,
} from '../../ports/certificate-issuer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import { ControllerHosts } from './controller-hosts.ts'

interface RouterCertifierDeps {
  readonly issuer: Pick<CertificateIssuer, 'router'>
  readonly state: Pick<StateView, 'get' | 'find' | 'findAll'>
  readonly cluster: Pick<ClusterView, 'members'>
  readonly logger: Pick<ServiceLogger, 'warn'>
}

/**
 * Decides which host names the certificate that a router requests may contain. The same authority
 * signs the certificates of controllers and routers, so clients distinguish them only by these
 * names.
 */
export class RouterNamingRules implements RouterCertifier {
  readonly #deps: RouterCertifierDeps
  readonly #controllerHosts: ControllerHosts

  constructor(deps: RouterCertifierDeps) {
    this.#deps = deps
    this.#controllerHosts = new ControllerHosts(deps.cluster)
  }

  async enroll(
    routerId: string,
    requests: RouterRequestPair,
    caller: string,
  ): Promise<RouterCertificatePair> {
    const rules = this.#rulesOf(routerId, 'enrollment')
    const issued = await this.#issue(routerId, requests, rules, caller)
    const withheld = issued.server.hosts.filter((host) => this.#isOfOther(host, routerId, rules))
    if (withheld.length === 0) return issued
    this.#deps.logger.warn(
      { routerId, withheld },
      'names of other routers were left out of a router certificate; an administrator can add them to allowedNames of the router',
    )
    return await this.#issue(routerId, requests, { ...rules, withheld }, caller)
  }

  async extend(
    routerId: string,
    requests: RouterRequestPair,
    caller: string,
  ): Promise<RouterCertificatePair> {
    return await this.#issue(routerId, requests, this.#rulesOf(routerId, 'extension'), caller)
  }

  #issue(
    routerId: string,
    { client, server }: RouterRequestPair,
    naming: RouterHostRules,
    caller: string,
  ): Promise<RouterCertificatePair> {
    const order = { routerId, clientRequestPem: client, serverRequestPem: server, naming }
    return this.#deps.issuer.router(order, caller)
  }

  #rulesOf(routerId: string, at: RouterHostRules['at']): RouterHostRules {
    const router = this.#deps.state.get('router', routerId)
    if (router === undefined) throw new Problem('NOT_FOUND')
    const { allowedNames: allowed, serverCertPem } = router
    const currentPem = at === 'extension' ? serverCertPem : null
    return { at, allowed, reserved: this.#controllerHosts.list(), withheld: [], currentPem }
  }

  /**
   * Whether the host is in another router's certificate, or is another router's name or id. False
   * for loopback names and for names that the record of this router allows.
   */
  #isOfOther(host: string, routerId: string, { allowed }: RouterHostRules): boolean {
    // Routers may share loopback names, because each machine has its own loopback interface.
    if (isLoopbackHost(host) || allowed.some((one) => normalizeHost(one) === host)) return false
    const { state } = this.#deps
    const holders = [
      ...state.findAll('router', 'certificateNames', host),
      state.find('router', 'name', host),
      state.get('router', host),
    ]
    // @guard router-certificate-names--others
    return holders.some((router) => router !== undefined && router.id !== routerId)
  }
}
