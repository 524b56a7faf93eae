import { create, toBinary } from '@bufbuild/protobuf'

import {
  CertificateAdoptSchema,
  CommandKind,
  RouterExtendVerifySchema,
} from '../../../proto/gen/command_pb.ts'
import type { Router } from '../../entities/kinds/router.ts'
import { canAdoptCertificate } from '../../fsm/enrollment/certificate-adoption.ts'
import { Problem } from '../../lib/problems.ts'
import { toHex } from '../../lib/text/to-hex.ts'
import { normalizeHost, isLoopbackHost, normalizedHosts } from '../../pki/authority/router-names.ts'
import type { Certificate } from '../../pki/certificate.ts'
import type { PresentedCertificates } from '../../pki/verify/client-chain.ts'
import { type Actor, createEnrollmentActor, createSystemActor } from '../../ports/actor.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import { commandFeatureLevel, ROUTER_RENEWAL_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import type { ProposalInput, Proposer } from '../../ports/proposer.ts'
import type { StateView } from '../../ports/state-view.ts'
import {
  type CertificateHolder,
  matchesRecordedCertificate,
  buildNetworkChain,
  routerRefusalReason,
  type TrustDeps,
} from './client-certificate.ts'
import { ControllerHosts } from './controller-hosts.ts'

/**
 * Maximum host names that a router's record stores, equal to the maximum in a server certificate.
 */
const NAMES_MAX = 64

interface Adopted {
  readonly holder: {
    readonly case: 'routerId' | 'authenticatorId'
    readonly value: string
  }
  /**
   * `names`: hosts in the certificate. `allowedNames`: the hosts among them that later certificates
   * of the router may contain.
   */
  readonly names?: string[]
  readonly allowedNames?: string[]
}

interface AdoptionDeps extends TrustDeps {
  readonly state: StateView
  readonly cluster: Pick<ClusterView, 'members'>
  readonly proposer: Proposer
}

/**
 * Records or activates the certificate that a connection presents; the TLS handshake has proved
 * possession of the leaf's key. There are two cases. A record that was migrated from OpenZiti
 * contains only the SHA-1 of its certificate: the controller stores a presented leaf once, if it
 * has that SHA-1, names the holder, and chains to the network (ADR 53). A router that renewed its
 * certificate has a pending and an active certificate: its first connection with the pending
 * certificate activates it (ADR 54).
 */
export class CertificateAdoption {
  readonly #deps: AdoptionDeps
  readonly #controllerHosts: ControllerHosts
  /** Proposals in progress, by the SHA-1 of the certificate. */
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(deps: AdoptionDeps) {
    this.#deps = deps
    this.#controllerHosts = new ControllerHosts(deps.cluster)
  }

  /**
   * Stores the certificate of a migrated router, or activates the pending certificate of a router
   * that renewed.
   * @returns null if there is nothing to do; otherwise a promise that resolves once this controller
   * has applied the outcome, which may be a refusal; below `MIGRATION_FEATURE_LEVEL`, the
   * certificate is not stored, and the promise resolves at once.
   * @throws {Problem} by rejecting the promise, for example if there is no leader.
   */
  ofRouter(chain: PresentedCertificates, address: string): Promise<void> | null {
    const router = this.#adoptableRouter(chain)
    if (router === null) return this.#activate(chain, address)
    const [leaf] = chain
    const names = normalizedHosts(leaf.names).slice(0, NAMES_MAX)
    const reserved = new Set(this.#controllerHosts.list().map(normalizeHost))
    // @guard adoption-of-a-certificate--controllers
    const allowedNames = names.filter((name) => !isLoopbackHost(name) && !reserved.has(name))
    const holder = { case: 'routerId', value: router.id } as const
    const actor = createEnrollmentActor({ routerId: router.id }, { method: 'channel', address })
    return this.#adopt(leaf, { holder, names, allowedNames }, actor)
  }

  /**
   * Stores the certificate of a migrated authenticator. The caller has checked that the log-in is
   * allowed.
   * @throws {Problem} for example if there is no leader to commit the change.
   */
  async ofHolder(
    { authenticator, identity }: CertificateHolder,
    leaf: Certificate,
    address: string,
  ): Promise<void> {
    const holder = { case: 'authenticatorId', value: authenticator?.id ?? '' } as const
    await this.#adopt(leaf, { holder }, createSystemActor({ address, identityId: identity.id }))
  }

  /**
   * The holder in whose migrated record the controller may store the presented certificate at
   * log-in; null if there is none.
   */
  adoptableHolder(chain: PresentedCertificates): CertificateHolder | null {
    const [leaf] = chain
    const { state } = this.#deps
    const authenticator = state.find('authenticator', 'fingerprint', leaf.sha1)
    if (authenticator === undefined || !canAdoptCertificate(authenticator, leaf.sha1)) return null
    const identity = state.get('identity', authenticator.identityId)
    // @guard adoption-of-a-certificate--identity
    if (identity === undefined || leaf.commonName !== identity.id) return null
    const question = { chain, requiresClientAuth: false, leafTime: 'reported' } as const
    const found = buildNetworkChain(this.#deps, question)
    // @guard adoption-of-a-certificate--authority
    if (!found.ok) return null
    const { leafTime, hasImproperChain } = found
    return { identity, authenticator, externalId: '', ca: null, leafTime, hasImproperChain }
  }

  #adoptableRouter(chain: PresentedCertificates): Router | null {
    const [leaf] = chain
    const router = this.#deps.state.find('router', 'fingerprint', leaf.sha1)
    if (router === undefined || !canAdoptCertificate(router, leaf.sha1)) return null
    // @guard adoption-of-a-certificate--router
    if (leaf.commonName !== router.id) return null
    // @guard adoption-of-a-certificate--chain
    return routerRefusalReason(this.#deps, router, chain) === null ? router : null
  }

  #activate([leaf, ...rest]: PresentedCertificates, address: string): Promise<void> | null {
    const { state } = this.#deps
    if (state.featureLevel < ROUTER_RENEWAL_FEATURE_LEVEL) return null
    const router = state.get('router', leaf.commonName ?? '')
    const isPending = router?.nextFingerprint === leaf.sha1
    if (!isPending || !matchesRecordedCertificate(leaf, router.nextCertPem)) return null
    if (routerRefusalReason(this.#deps, router, [leaf, ...rest]) !== null) return null
    const message = create(RouterExtendVerifySchema, {
      routerId: router.id,
      fingerprint: leaf.sha1,
    })
    const payload = toBinary(RouterExtendVerifySchema, message)
    const actor = createEnrollmentActor({ routerId: router.id }, { method: 'channel', address })
    return this.#once(leaf.sha1, { kind: CommandKind.ROUTER_EXTEND_VERIFY, payload, actor })
  }

  #adopt(
    { pem, sha1: fingerprint, publicKeySha256 }: Certificate,
    adopted: Adopted,
    actor: Actor,
  ): Promise<void> {
    const kind = CommandKind.CERTIFICATE_ADOPT
    if (this.#deps.state.featureLevel < commandFeatureLevel(kind)) return Promise.resolve()
    const certificate = { pem, fingerprint, publicKeyPrint: toHex(publicKeySha256) }
    const message = create(CertificateAdoptSchema, { ...adopted, certificate })
    const payload = toBinary(CertificateAdoptSchema, message)
    return this.#once(fingerprint, { kind, payload, actor })
  }

  /** Writes one log entry, even if many connections present the certificate at the same time. */
  #once(sha1: string, input: ProposalInput): Promise<void> {
    const known = this.#underWay.get(sha1)
    if (known !== undefined) return known
    const proposal = this.#propose(input).finally(() => this.#underWay.delete(sha1))
    this.#underWay.set(sha1, proposal)
    return proposal
  }

  async #propose(input: ProposalInput): Promise<void> {
    const { outcome } = await this.#deps.proposer.propose(input)
    // All other refusals mean that the record changed meanwhile. They are not thrown, because the
    // caller then checks the certificate against the changed record.
    if (!outcome.ok && outcome.code === 'FEATURE_LEVEL_NOT_RAISED') throw new Problem(outcome.code)
  }
}
