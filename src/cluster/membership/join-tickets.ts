import { isIP } from 'node:net'
import { timingSafeEqual } from 'node:crypto'

import { clone, create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  TicketCreateSchema,
  TicketRedeemSchema,
  TicketRevokeSchema,
} from '../../../proto/gen/command_pb.ts'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
} from '../../../proto/gen/membership_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { isControllerId, parseHostPort } from '../../lib/text/names.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import {
  issueControllerCertificateForKey,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../pki/authority/authority.ts'
import { CertificateError, parseCertificates } from '../../pki/certificate.ts'
import { parseCertificateRequest } from '../../pki/authority/certificate-request.ts'
import {
  formatTicket,
  newTicketSecret,
  parseTicket,
  type Ticket,
  TICKET_ADDRESSES_MAX,
  ticketDigest,
  TicketError,
} from '../../pki/secrets/ticket.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type {
  ControllerAdmission,
  NewJoinTicket,
  JoinResponse,
  JoinRequest,
  SharedOption,
  TicketView,
} from '../../ports/membership.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { RecordOf, StateView } from '../../ports/state-view.ts'
import { type Actor, SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { CurrentConfiguration } from '../cluster-node-deps.ts'
import type { Logger } from '../logger.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { refusalProblem } from '../../lib/refusal-problem.ts'
import { wrapSecretsForAll } from '../secrets/wrap-secrets.ts'

interface AdmissionDeps {
  readonly cluster: ClusterView & { configuration(): CurrentConfiguration }
  readonly proposer: Proposer
  readonly state: StateView
  readonly keyring: Pick<Keyring, 'issuing' | 'held' | 'refresh'>
  readonly clock: Clock
  readonly log: Logger
  readonly trustDomain: string
  /** PEM of the CA certificates that this controller trusts now. */
  readonly caPem: () => string
  /**
   * Current host:port of a member's mesh; null: the caller uses the address in the member record.
   */
  readonly addressOf?: (id: string) => string | null
  /** Options that must have the same values on a new controller. */
  readonly sharedOptions: readonly SharedOption[]
}

/** Limits for join tickets, and for the requests that anyone with a ticket can make. */
export const admissionLimits = {
  /** Minimum lifetime of a ticket; a request for a shorter one is refused. */
  lifetimeMsMin: 60_000,
  /** Maximum lifetime of a ticket; a request for a longer one is refused. */
  lifetimeMsMax: 7 * 24 * 60 * 60_000,
  /** Maximum DNS names and IP addresses in one join request; a request with more is refused. */
  hostsMax: 32,
  /**
   * Maximum characters of the mesh address in a join request; a request with a longer one is
   * refused.
   */
  textCharactersMax: 300,
  /**
   * Maximum time to wait until this controller has caught up. It is also the maximum time to wait
   * until a configuration is committed.
   */
  waitMs: 5000,
} as const

const ATTEMPTS_MAX = 5
const POLL_MS = 20
const STORE_ID_BYTES = 16
const DNS_NAME = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*\.?$/

/**
 * Admits new controllers with join tickets. Any member checks the request, signs the certificate
 * and wraps the secrets; the state machine then makes the final decision, so that a ticket admits
 * only one controller.
 */
export class JoinTickets implements ControllerAdmission {
  readonly #deps: AdmissionDeps

  constructor(deps: AdmissionDeps) {
    this.#deps = deps
  }

  /**
   * Creates a join ticket.
   * @throws {Problem} COULD_NOT_VALIDATE, MEMBERSHIP_REFUSED, and as {@link Proposer.propose}.
   */
  async invite(
    options: { readonly isVoter: boolean; readonly lifetimeMs: number },
    by: Actor,
  ): Promise<NewJoinTicket> {
    const { cluster, state, clock, trustDomain, caPem } = this.#deps
    const { lifetimeMs, isVoter } = options
    const { lifetimeMsMin, lifetimeMsMax } = admissionLimits
    if (!Number.isSafeInteger(lifetimeMs) || lifetimeMs < lifetimeMsMin) {
      throw fieldProblem('lifetimeMs', 'must be at least a minute', lifetimeMs)
    }
    if (lifetimeMs > lifetimeMsMax) {
      throw fieldProblem('lifetimeMs', 'must be at most 7 days', lifetimeMs)
    }
    const id = newShortId()
    const expiresAtMs = Math.max(state.logTimeMs, clock.nowMs()) + lifetimeMs
    const ticket = textOf({
      id,
      secret: newTicketSecret(),
      clusterId: cluster.clusterId,
      generation: cluster.generation,
      trustDomain,
      caPem: caPem(),
      addresses: this.#addresses(),
      isVoter,
      expiresAtMs,
    })
    const message = create(TicketCreateSchema, {
      id,
      digest: ticketDigest(ticket),
      voter: isVoter,
      expiresAtMs: BigInt(expiresAtMs),
    })
    const payload = toBinary(TicketCreateSchema, message)
    const { outcome } = await this.#propose(CommandKind.TICKET_CREATE, payload, by)
    if (!outcome.ok) throw refusalProblem(outcome)
    return { ticket, id, expiresAtMs }
  }

  async tickets(): Promise<readonly TicketView[]> {
    // The latest state also lists tickets that another controller has just created.
    await this.#reachLatest()
    const { state } = this.#deps
    const { records } = state.list('joinTicket', { limit: -1 })
    return records
      .filter(({ expiresAt }) => (expiresAt ?? 0) > state.logTimeMs)
      .map(viewOf)
      .toSorted((a, b) => b.createdAtMs - a.createdAtMs)
  }

  async revoke(id: string, by: Actor): Promise<void> {
    const payload = toBinary(TicketRevokeSchema, create(TicketRevokeSchema, { id }))
    const { outcome } = await this.#propose(CommandKind.TICKET_REVOKE, payload, by)
    if (!outcome.ok) throw refusalProblem(outcome)
    this.#deps.log.info({ ticketId: id }, 'revoked a ticket')
  }

  /**
   * Fabric API addresses of members, up to a maximum: first those of this member, then those of
   * connected members, then those of the others.
   */
  #addresses(): readonly string[] {
    const { cluster } = this.#deps
    const rank = (id: string, connected: boolean): number =>
      id === cluster.selfId ? 0 : connected ? 1 : 2
    const addresses = cluster
      .members()
      .toSorted((a, b) => rank(a.id, a.connected) - rank(b.id, b.connected))
      .flatMap(({ apiAddresses }) => apiAddresses.filter(({ api }) => api === 'fabric'))
      .map(({ url }) => url)
    if (addresses.length > 0) return addresses.slice(0, TICKET_ADDRESSES_MAX)
    throw new Problem('MEMBERSHIP_REFUSED', {
      detail: "no controller serves the fabric API, which a join needs; add 'fabric' to web.apis",
    })
  }

  /**
   * Admits a controller. A repeated request with the same ticket from the same controller is not a
   * second admission.
   * @throws {Problem} TICKET_REFUSED, MEMBERSHIP_REFUSED, COULD_NOT_VALIDATE with the field,
   * PEER_UNREACHABLE without the issuing authority, INDEX_NOT_REACHED, MEMBERSHIP_BUSY, and as
   * {@link Proposer.propose}.
   */
  async admit(request: JoinRequest): Promise<JoinResponse> {
    const ticket = this.#ticketOf(request)
    const digest = ticketDigest(request.ticket)
    const publicKeySpki = await this.#judge(request)
    // The request needs the latest state: another controller may just have created the ticket or
    // admitted another member.
    await this.#reachLatest()
    this.#checkKnown(ticket, digest)
    this.#checkLevel(request)
    const { log } = this.#deps
    for (let attempt = 1; ; attempt += 1) {
      const payload = await this.#redeem(request, ticket, digest, publicKeySpki)
      const { outcome } = await this.#propose(CommandKind.TICKET_REDEEM, payload, SYSTEM_ACTOR)
      if (outcome.ok) break
      if (outcome.code !== 'REVISION_MOVED' || attempt === ATTEMPTS_MAX)
        throw refusalProblem(outcome)
    }
    log.info(
      { controller: request.id, ticketId: ticket.id },
      `${request.id} redeemed its join ticket`,
    )
    return await this.#answer(request.id)
  }

  /** Parses the ticket and checks its cluster and generation. */
  #ticketOf({ ticket: text }: JoinRequest): Ticket {
    const { cluster } = this.#deps
    let ticket: Ticket
    try {
      ticket = parseTicket(text)
    } catch (error) {
      if (error instanceof TicketError) {
        throw new Problem('TICKET_REFUSED', { detail: error.message })
      }
      throw error
    }
    if (ticket.clusterId !== cluster.clusterId) {
      throw ticketRefused('the ticket belongs to another cluster; get one from this cluster')
    }
    if (ticket.generation !== cluster.generation) {
      throw ticketRefused('the ticket predates the recovery of the cluster; get a new one')
    }
    return ticket
  }

  #checkKnown(ticket: Ticket, digest: Uint8Array): void {
    const { state } = this.#deps
    const known = state.get('joinTicket', ticket.id)
    const expected = Buffer.from(known?.digest ?? '', 'hex')
    if (expected.length !== digest.length || !timingSafeEqual(expected, digest)) {
      throw ticketRefused("unknown or expired ticket; get a new one ('flotilla cluster invite')")
    }
    if ((known?.expiresAt ?? 0) <= state.logTimeMs) {
      throw ticketRefused("the ticket has expired; get a new one ('flotilla cluster invite')")
    }
  }

  /**
   * A release that supports a higher level than the cluster's may join. A release that does not
   * support the cluster's level would have to stop immediately.
   */
  #checkLevel({ featureLevel }: JoinRequest): void {
    const inForce = this.#deps.state.featureLevel
    if (featureLevel >= inForce) return
    throw new Problem('MEMBERSHIP_REFUSED', {
      detail: `the cluster is at feature level ${inForce} and the new controller supports up to ${String(featureLevel)}; install the version that the cluster runs`,
    })
  }

  /**
   * Checks the fields of the request.
   * @returns the public key whose possession the certificate request proves.
   */
  async #judge(request: JoinRequest): Promise<Uint8Array> {
    const { id, address, hosts, storeId } = request
    if (!isControllerId(id)) {
      throw fieldProblem('id', 'must be 1 to 64 letters, digits, dots, underscores and hyphens')
    }
    if (storeId.length !== STORE_ID_BYTES) throw fieldProblem('storeId', 'must have 16 bytes')
    if (address.length > admissionLimits.textCharactersMax || parseHostPort(address) === null) {
      throw fieldProblem('address', 'must be host:port')
    }
    if (hosts.length === 0 || hosts.length > admissionLimits.hostsMax || !hosts.every(isHost)) {
      throw fieldProblem('hosts', 'must be 1 to 32 DNS names or IP addresses')
    }
    try {
      const parsed = await parseCertificateRequest(request.certificateRequestPem)
      if (parsed.commonName === id) return parsed.publicKeySpki
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error
      throw fieldProblem('certificateRequestPem', error.message)
    }
    throw fieldProblem('certificateRequestPem', 'its common name must be the id')
  }

  async #reachLatest(): Promise<void> {
    const { cluster, state } = this.#deps
    const index = await cluster.readIndex()
    if (await state.waitForApplied(index, admissionLimits.waitMs)) return
    throw new Problem('INDEX_NOT_REACHED', { retryAfterSeconds: 1 })
  }

  async #redeem(
    request: JoinRequest,
    ticket: Ticket,
    digest: Uint8Array,
    publicKeySpki: Uint8Array,
  ): Promise<Uint8Array> {
    const { state, keyring } = this.#deps
    const { id: nodeId, storeId, address } = request
    await keyring.refresh()
    const message = create(TicketRedeemSchema, {
      ticketId: ticket.id,
      ticketDigest: digest,
      nodeId,
      storeId,
      publicKeySpki,
      address,
      certificatePem: await this.#certify(request, publicKeySpki),
      secrets: await wrapSecretsForAll(state.clusterId, keyring.held(), [
        { nodeId, publicKeySpki },
      ]),
    })
    return toBinary(TicketRedeemSchema, message)
  }

  async #certify({ id, hosts }: JoinRequest, publicKeySpki: Uint8Array): Promise<string> {
    const { keyring, clock, trustDomain } = this.#deps
    const issuer = keyring.issuing()
    if (issuer === null) {
      throw new Problem('PEER_UNREACHABLE', {
        detail: 'this controller does not have the issuing authority; use another controller',
      })
    }
    const nowMs = clock.nowMs()
    const [authority] = parseCertificates(issuer.certificatePem)
    const { notBeforeMs, notAfterMs } = validityStartingAt(nowMs, LEAF_LIFETIME_MS)
    const validity = { notBeforeMs, notAfterMs: Math.min(notAfterMs, authority.notAfterMs) }
    const leaf = { issuer, trustDomain, id, hosts, publicKeySpki, validity }
    return await issueControllerCertificateForKey(leaf)
  }

  /**
   * Builds the response from the admission record in the state, which an earlier request may have
   * created.
   */
  async #answer(id: string): Promise<JoinResponse> {
    const { cluster, state, clock, trustDomain, caPem, sharedOptions } = this.#deps
    const { record, index } = await this.#settledConfiguration()
    const admission = state.get('admission', id)
    if (admission === undefined) {
      throw new Problem('MEMBERSHIP_REFUSED', {
        detail: `${id} was removed during its join; get a new ticket`,
      })
    }
    return {
      clusterId: cluster.clusterId,
      generation: cluster.generation,
      trustDomain,
      certificatePem: admission.certificatePem,
      caPem: caPem(),
      configuration: toBinary(ConfigurationSchema, this.#whereTheyAre(record)),
      configurationIndex: index,
      isVoter: admission.isVoter,
      nowMs: clock.nowMs(),
      sharedOptions,
    }
  }

  /**
   * Replaces the addresses of members with their current ones, where they are known. A new
   * controller cannot learn these elsewhere: a member record contains only the address from the
   * member's last admission.
   */
  #whereTheyAre(record: ConfigurationRecord): ConfigurationRecord {
    const { addressOf } = this.#deps
    const located = clone(ConfigurationSchema, record)
    for (const member of located.members) member.address = addressOf?.(member.id) ?? member.address
    return located
  }

  /**
   * Waits for a committed configuration, from which a new controller must start.
   * @throws {Problem} MEMBERSHIP_BUSY
   */
  async #settledConfiguration(): Promise<CurrentConfiguration> {
    const { cluster, clock } = this.#deps
    const deadlineMs = clock.monotonicMs() + admissionLimits.waitMs
    for (;;) {
      const configuration = cluster.configuration()
      if (configuration.isCommitted) return configuration
      if (clock.monotonicMs() >= deadlineMs) throw new Problem('MEMBERSHIP_BUSY')
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }

  #propose(kind: CommandKind, payload: Uint8Array, actor: Actor): ReturnType<Proposer['propose']> {
    return this.#deps.proposer.propose({ kind, payload, actor })
  }
}

function viewOf(ticket: RecordOf<'joinTicket'>): TicketView {
  const { id, isVoter, createdAt, expiresAt, usedByNodeId } = ticket
  return {
    id,
    isVoter,
    createdAtMs: createdAt,
    expiresAtMs: expiresAt ?? 0,
    usedBy: usedByNodeId === '' ? null : usedByNodeId,
  }
}

function textOf(ticket: Ticket): string {
  try {
    return formatTicket(ticket)
  } catch (error) {
    if (!(error instanceof TicketError)) throw error
    throw new Problem('MEMBERSHIP_REFUSED', { detail: error.message })
  }
}

function ticketRefused(detail: string): Problem {
  return new Problem('TICKET_REFUSED', { detail })
}

/** Excludes wildcards: the certificate must name each host. */
function isHost(text: string): boolean {
  return isIP(text) !== 0 || (text.length <= 253 && DNS_NAME.test(text))
}
