import type { JoinResponse, JoinRequest, SharedOption } from '../../ports/membership.ts'
import { type Certificate, leafControllerId } from '../../pki/certificate.ts'
import type { Ticket } from '../../pki/secrets/ticket.ts'
import { parseApiRefusal } from '../client/api-refusal.ts'
import { sendHttpsRequest, HttpsFault, type HttpsResponse } from '../client/https-request.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { isNonNegativeInteger } from '../../lib/text/json-value.ts'

const REACH_MS = 5_000
/**
 * Time limit for one join request. It exceeds the time for which a controller retries a write,
 * because the member also signs a certificate and encrypts secrets.
 */
const ANSWER_MS = 15_000
/**
 * Time limit for all attempts together; leaves time for the election of a leader, or for the
 * failure of the queried member.
 */
const PATIENCE_MS = 45_000
const PAUSE_MS = 500

/** A member named in the ticket that responded, and its clock. */
export interface ReachedMember {
  readonly address: string
  readonly id: string
  /** Clock of this host minus the clock of the member, ms; null when the member sent no time. */
  readonly clockOffsetMs: number | null
}

/**
 * Verifies a member: trusts only the CA in the ticket, and accepts only a controller in the trust
 * domain of the ticket. Ignores the host name, which the certificate need not contain.
 */
class MemberAdmission {
  /** Id of the last controller that presented a valid certificate. */
  memberId = ''
  readonly #ticket: Ticket

  constructor(ticket: Ticket) {
    this.#ticket = ticket
  }

  ask(address: string, body: unknown, timeoutMs: number): Promise<HttpsResponse> {
    return sendHttpsRequest({
      url: `${address}/cluster/join`,
      method: body === undefined ? 'GET' : 'POST',
      body,
      caPem: this.#ticket.caPem,
      verified: 'chain',
      judge: (leaf) => this.#judge(leaf),
      timeoutMs,
    })
  }

  #judge(leaf: Certificate): void {
    try {
      this.memberId = leafControllerId(leaf, this.#ticket.trustDomain)
    } catch (error) {
      throw new Error(`is not a controller of this cluster: ${errorMessage(error)}`, {
        cause: error,
      })
    }
  }
}

/**
 * Connects to all addresses in the ticket at the same time.
 * @returns the members that responded as controllers of the cluster.
 */
export async function reachMembers(
  ticket: Ticket,
): Promise<{ readonly reached: readonly ReachedMember[]; readonly faults: readonly string[] }> {
  const faults: string[] = []
  const tried = await Promise.all(
    ticket.addresses.map(async (address) => {
      const door = new MemberAdmission(ticket)
      const before = Date.now()
      try {
        const { dateMs } = await door.ask(address, undefined, REACH_MS)
        const middle = (before + Date.now()) / 2
        // The `date` header contains whole seconds; adding half a second gives the best estimate.
        const clockOffsetMs = dateMs === null ? null : middle - (dateMs + 500)
        return [{ address, id: door.memberId, clockOffsetMs }]
      } catch (error) {
        if (!(error instanceof HttpsFault)) throw error
        faults.push(`${address} ${error.message}`)
        return []
      }
    }),
  )
  return { reached: tried.flat(), faults }
}

type JoinOutcome =
  | { readonly type: 'admitted'; readonly answer: JoinResponse }
  /**
   * The cluster refused the request and would refuse it again. `isOpen`: the outcome of an earlier
   * attempt is unknown, so the cluster may have stored the key.
   */
  | { readonly type: 'refused'; readonly sentence: string; readonly isOpen: boolean }
  /**
   * No member gave a final response before the deadline, or a member sent an unusable response.
   * `isSent`: the request may have reached a member.
   */
  | { readonly type: 'unknown'; readonly sentence: string; readonly isSent: boolean }

/**
 * Sends the request to one member after the other until a member gives a final response. It is safe
 * to repeat the same request.
 */
export async function requestJoin(
  ticket: Ticket,
  addresses: readonly string[],
  request: JoinRequest,
  options: { readonly patienceMs?: number } = {},
): Promise<JoinOutcome> {
  const deadlineMs = performance.now() + (options.patienceMs ?? PATIENCE_MS)
  const body = { ...request, storeId: Buffer.from(request.storeId).toString('base64url') }
  const door = new MemberAdmission(ticket)
  let isSent = false
  let isOpen = false
  let last = 'no member is reachable'
  for (let attempt = 0; ; attempt += 1) {
    const address = addresses[attempt % addresses.length] ?? ''
    try {
      const { status, body: answer } = await door.ask(address, body, ANSWER_MS)
      isSent = true
      if (status >= 200 && status < 300) return admitted(address, answer)
      last = parseApiRefusal(status, answer).message
      if (status < 500 && status !== 429) return { type: 'refused', sentence: last, isOpen }
      isOpen = true
    } catch (error) {
      if (!(error instanceof HttpsFault)) throw error
      isSent ||= error.isSent
      isOpen ||= error.isSent
      last = `${address} ${error.message}`
    }
    if (performance.now() > deadlineMs) return { type: 'unknown', sentence: last, isSent }
    if ((attempt + 1) % addresses.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
}

function admitted(address: string, body: unknown): JoinOutcome {
  const answer = answerOf((body as { data?: unknown } | null)?.data)
  if (answer !== null) return { type: 'admitted', answer }
  const sentence = `${address}: unknown response; install the version of flotilla that the cluster runs`
  return { type: 'unknown', sentence, isSent: true }
}

function answerOf(data: unknown): JoinResponse | null {
  const found = { ...(data as Readonly<Record<string, unknown>> | null) }
  const { clusterId, generation, trustDomain, certificatePem, caPem } = found
  const { configuration, configurationIndex, isVoter, nowMs } = found
  if (typeof clusterId !== 'string' || typeof trustDomain !== 'string') return null
  if (typeof certificatePem !== 'string' || typeof caPem !== 'string') return null
  if (typeof configuration !== 'string' || typeof isVoter !== 'boolean') return null
  if (
    !isNonNegativeInteger(generation) ||
    !isNonNegativeInteger(configurationIndex) ||
    !isNonNegativeInteger(nowMs)
  )
    return null
  return {
    clusterId,
    generation,
    trustDomain,
    certificatePem,
    caPem,
    configuration: Uint8Array.from(Buffer.from(configuration, 'base64url')),
    configurationIndex,
    isVoter,
    nowMs,
    sharedOptions: optionsOf(found['sharedOptions']),
  }
}

/**
 * The options whose values are strings, numbers or booleans. Options with other values come from a
 * later release and are omitted.
 */
function optionsOf(data: unknown): readonly SharedOption[] | null {
  if (!Array.isArray(data) || data.length === 0) return null
  return data.flatMap((one: unknown) => {
    const { name, value } = { ...(one as Readonly<Record<string, unknown>> | null) }
    if (typeof name !== 'string' || typeof value !== 'string') return []
    return isPlainJson(value) ? [{ name, value }] : []
  })
}

function isPlainJson(text: string): boolean {
  try {
    return ['string', 'number', 'boolean'].includes(typeof JSON.parse(text))
  } catch {
    return false
  }
}
