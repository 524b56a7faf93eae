import type { ChannelMessage } from '../../channel/frame.ts'
import { encodeFlag, readFlag } from '../../channel/headers.ts'
import { channelHeaderKey } from '../../channel/numbers.ts'
import { CreateTerminatorResult, TerminatorFault } from '../../../proto/gen/router_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { KeyedTokenBuckets } from '../../lib/bounds/keyed-token-buckets.ts'
import { errorMessage } from '../../lib/error-code.ts'
import {} from '../controllers/terminator-validator.ts'
import type { ControlConnection, ControlMessageTable } from '../controllers/control-connection.ts'
import type { ControllerRequestLimiter } from '../controllers/controller-request-limiter.ts'
import { edgeLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { ClientChannel } from './client-channel.ts'
import {
  readTerminatorResponse,
  readTerminatorQuery,
  removeTerminatorsMessage,
  terminatorStatesMessage,
} from '../../channel/messages/terminators.ts'
import {
  type ConnectionCloseReason,
  connectionMessage,
  connectionTypeCode,
  edgeErrorCode,
  edgeHeaderKey,
  edgeContentType,
  retryHint,
  connectionClosedMessage,
} from '../../channel/messages/edge.ts'
import { TerminatorChangeReporter } from './terminator-change-reporter.ts'
import {
  terminatorCreationRequest,
  type HostedTerminator,
  newHostedTerminator,
} from './hosted-terminator.ts'
import { isListedSession, readServiceSession } from './service-session.ts'
import { addToSet, removeFromSet } from '../../lib/keyed-sets.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

export interface HostedTerminatorRegistryDeps {
  readonly clock: Clock
  readonly log: ProgramLogger
  readonly connections: () => readonly ControlConnection[]
  readonly operations: ControllerRequestLimiter
  /** The controller for requests of this client; null if no controller is connected. */
  readonly controllerFor: (client: ClientChannel) => ControlConnection | null
  /**
   * Resolves when the controller has answered all posture reports of the client, or their timeouts
   * have expired.
   */
  readonly postureSettled: (client: ClientChannel, controllerId: string) => Promise<void>
}

const BINDING = 'edge'
/** Optional prefix of a terminator's address in a route. */
const HOSTED_PREFIX = 'hosted:'

/**
 * Services that clients host at this router. For each, the router has the controllers create a
 * terminator, and remove it when the client disconnects or no longer hosts the service.
 */
export class HostedTerminatorRegistry {
  readonly #deps: HostedTerminatorRegistryDeps
  readonly #byId = new Map<string, HostedTerminator>()
  readonly #byClient = new Map<ClientChannel, Map<number, HostedTerminator>>()
  /** Terminators by service session token. */
  readonly #bySession = new Map<string, Set<HostedTerminator>>()
  /** IDs of terminators that are removed here and not yet at the controllers. */
  readonly #removed = new Set<string>()
  /**
   * For each terminator ID with a pending request, a function that ends the wait for the response.
   */
  readonly #waits = new Map<string, () => void>()
  readonly #changes: TerminatorChangeReporter
  readonly #creations: KeyedTokenBuckets
  #isRemoving = false
  #isSweepDue = false
  #stopTimer: (() => void) | null = null

  constructor(deps: HostedTerminatorRegistryDeps) {
    this.#deps = deps
    this.#changes = new TerminatorChangeReporter(deps)
    const rate = {
      burst: edgeLimits.hostCreationsBurst,
      perSecond: edgeLimits.hostCreationsPerSecond,
    }
    this.#creations = new KeyedTokenBuckets({ ...rate, keysMax: edgeLimits.hostedMax }, deps.clock)
  }

  get all(): readonly HostedTerminator[] {
    return [...this.#byId.values()]
  }

  messages(): ControlMessageTable {
    return new Map([
      [controlContentType.createTerminatorV2Response, (_, { body }) => this.#onAnswer(body)],
      [
        controlContentType.validateTerminatorsV2,
        (connection, message) => {
          void this.#validate(connection, message)
        },
      ],
    ])
  }

  start(): void {
    this.#stopTimer = periodicScheduler.every(edgeLimits.terminatorsSweptEveryMs, () =>
      this.#sweep(),
    )
  }

  stop(): void {
    this.#stopTimer?.()
    for (const endWait of this.#waits.values()) endWait()
  }

  find(destination: string): HostedTerminator | null {
    const isPrefixed = destination.startsWith(HOSTED_PREFIX)
    return (
      this.#byId.get(isPrefixed ? destination.slice(HOSTED_PREFIX.length) : destination) ?? null
    )
  }

  isHosting(client: ClientChannel, connectionId: number): boolean {
    return this.#byClient.get(client)?.has(connectionId) === true
  }

  bind(client: ClientChannel, message: ChannelMessage, connectionId: number): void {
    const session = readServiceSession(message.body)
    const fault =
      client.faultOfId(connectionId) ??
      (session === null ? 'the request shows no service session' : null) ??
      this.#faultOfRoom(client)
    if (fault !== null || session === null) {
      client.refuse(message, connectionId, fault ?? '')
      return
    }
    const nowMs = this.#deps.clock.monotonicMs()
    const made = newHostedTerminator(client, message, connectionId, session, nowMs)
    const before = this.#sameListener(made)
    const terminator =
      before === null ? made : { ...made, id: before.id, isEstablished: before.isEstablished }
    if (before !== null) this.#drop(before)
    this.#keep(terminator)
    const echoed = terminator.takesRouterIds
      ? [[edgeHeaderKey.routerProvidedConnId, encodeFlag(true)] as const]
      : []
    client.channel.reply(
      message,
      connectionMessage(edgeContentType.stateConnected, connectionId, echoed),
    )
    if (terminator.isEstablished) this.#sendEstablished(terminator)
    else this.#sweepSoon()
    if (terminator.listenerId === '') this.#removeOlder(terminator)
  }

  unbind(client: ClientChannel, { body }: ChannelMessage, connectionId: number): void {
    const terminator = this.#of(client, connectionId, body)
    if (terminator !== null) this.#remove(terminator, 'unbound by the client')
  }

  updateBind(client: ClientChannel, message: ChannelMessage, connectionId: number): void {
    const terminator = this.#of(client, connectionId, message.body)
    if (terminator !== null) this.#changes.update(terminator, message)
  }

  onHealth(client: ClientChannel, message: ChannelMessage, connectionId: number): void {
    const terminator = this.#of(client, connectionId, message.body)
    if (terminator !== null) this.#changes.onHealth(terminator, message)
  }

  /** Removes terminators whose service sessions have ended. */
  endSessions(tokens: ReadonlySet<string>, ids: ReadonlySet<string>): void {
    for (const terminator of this.all) {
      // @guard client-of-a-removed-session--terminator
      if (isListedSession(terminator.session, tokens, ids))
        this.#refuseHost(terminator, sessionEnded)
    }
  }

  /**
   * Removes the terminators of a client whose channel has closed, because its services are
   * unreachable.
   */
  onClientClosed(client: ClientChannel): void {
    for (const terminator of Array.from(this.#byClient.get(client)?.values() ?? [])) {
      this.#remove(terminator, 'the host is gone')
    }
  }

  /**
   * Schedules the requests for this controller's terminators again, because it may have lost
   * earlier requests in a restart.
   */
  onControllerConnected({ id }: ControlConnection): void {
    const dueMs = this.#deps.clock.monotonicMs() + edgeLimits.terminatorsRepeatedMs
    for (const terminator of this.#byId.values()) {
      if (terminator.controllerId !== id) continue
      terminator.isEstablished = false
      this.#waits.get(terminator.id)?.()
      terminator.dueMs = dueMs
    }
  }

  #faultOfRoom(client: ClientChannel): string | null {
    const own = this.#byClient.get(client)?.size ?? 0
    const isFull = own >= edgeLimits.hostedPerChannelMax || this.#byId.size >= edgeLimits.hostedMax
    return isFull ? 'too many services are hosted' : null
  }

  /**
   * The existing terminator of the same listener. Identity and session must match as well, so that
   * a client cannot take over the terminator of another client.
   */
  #sameListener({ client, session, listenerId }: HostedTerminator): HostedTerminator | null {
    if (listenerId === '') return null
    const { identityId } = client.client.session
    for (const one of this.#bySession.get(session.token) ?? []) {
      const isOfIdentity = one.client.client.session.identityId === identityId
      // @guard connections-of-another-client--listener
      if (isOfIdentity && one.listenerId === listenerId) return one
    }
    return null
  }

  /**
   * Removes the earlier terminator of a client that sends no listener IDs and has bound the service
   * again.
   */
  #removeOlder(terminator: HostedTerminator): void {
    for (const other of Array.from(this.#bySession.get(terminator.session.token) ?? [])) {
      // @guard connections-of-another-client--older
      const isSame =
        other.instanceId === terminator.instanceId &&
        other.client.client.session.identityId === terminator.client.client.session.identityId
      if (isSame && other !== terminator) this.#remove(other, 'bound once more by the client')
    }
  }

  #of(client: ClientChannel, connectionId: number, body: Uint8Array): HostedTerminator | null {
    const found = this.#byClient.get(client)?.get(connectionId)
    return found?.session.token === Buffer.from(body).toString('utf8') ? found : null
  }

  #keep(terminator: HostedTerminator): void {
    const { id, client, connectionId } = terminator
    this.#byId.set(id, terminator)
    this.#removed.delete(id)
    const own = this.#byClient.get(client) ?? new Map<number, HostedTerminator>()
    this.#byClient.set(client, own.set(connectionId, terminator))
    addToSet(this.#bySession, terminator.session.token, terminator)
  }

  #drop(terminator: HostedTerminator): void {
    const { id, client, connectionId, session } = terminator
    this.#byId.delete(id)
    this.#changes.drop(terminator)
    this.#waits.get(id)?.()
    removeFromSet(this.#bySession, session.token, terminator)
    const own = this.#byClient.get(client)
    own?.delete(connectionId)
    if (own?.size === 0) this.#byClient.delete(client)
  }

  #remove(terminator: HostedTerminator, reason: string): void {
    if (this.#byId.get(terminator.id) !== terminator) return
    this.#drop(terminator)
    this.#deps.log.info({ terminatorId: terminator.id, reason }, 'terminator of a client removed')
    const isAtController = terminator.isEstablished || terminator.controllerId !== ''
    if (isAtController && this.#removed.size < edgeLimits.terminatorsRemovedWaitingMax) {
      this.#removed.add(terminator.id)
    }
    void this.#reportRemoved()
  }

  /** Reports the reason to the host, and removes the terminator. */
  #refuseHost(terminator: HostedTerminator, reason: ConnectionCloseReason): void {
    terminator.client.send(connectionClosedMessage(terminator.connectionId, reason))
    this.#remove(terminator, reason.text)
  }

  #onAnswer(body: Uint8Array): void {
    const { terminatorId, result, msg, errorCode, retryHint: hint } = readTerminatorResponse(body)
    const terminator = this.#byId.get(terminatorId)
    if (terminator === undefined) return
    const nowMs = this.#deps.clock.monotonicMs()
    this.#waits.get(terminatorId)?.()
    if (result === CreateTerminatorResult.SUCCESS) {
      const isNews = !terminator.isEstablished
      terminator.isEstablished = true
      terminator.strikes = 0
      if (isNews) this.#sendEstablished(terminator)
      return
    }
    if (result === CreateTerminatorResult.FAILED_BUSY) {
      terminator.dueMs = nowMs + edgeLimits.terminatorBusyMs
      return
    }
    terminator.strikes += 1
    terminator.dueMs = nowMs + edgeLimits.terminatorBusyMs
    const isFinal =
      hint !== 0 ||
      result === CreateTerminatorResult.FAILED_INVALID_SESSION ||
      terminator.strikes >= edgeLimits.terminatorStrikesMax
    if (!isFinal) return
    const text = msg === '' ? 'the controller refused the terminator' : msg
    const code = errorCode === 0 ? edgeErrorCode.internal : errorCode
    this.#refuseHost(terminator, { text, code, retryHint: hint === 0 ? retryHint.startOver : hint })
  }

  #sendEstablished({ id, client, connectionId, wantsSuccess }: HostedTerminator): void {
    this.#deps.log.info(
      { terminatorId: id, identityId: client.client.session.identityId },
      'terminator of a client established',
    )
    if (wantsSuccess) client.send(connectionMessage(edgeContentType.bindSuccess, connectionId))
  }

  #sweepSoon(): void {
    if (this.#isSweepDue) return
    this.#isSweepDue = true
    setImmediate(() => {
      this.#isSweepDue = false
      this.#sweep()
    })
  }

  /** Sends the requests that are due. */
  #sweep(): void {
    void this.#reportRemoved()
    this.#changes.sweep()
    const nowMs = this.#deps.clock.monotonicMs()
    for (const terminator of this.#byId.values()) {
      if (terminator.dueMs > nowMs) continue
      // @guard host-that-changes-its-mind--creations
      if (terminator.isAsked) this.#waits.get(terminator.id)?.()
      else if (!terminator.isEstablished && this.#mayCreate(terminator)) {
        void this.#ask(terminator)
      }
    }
  }

  /** Limits the rate of creations, because each one is a write to the cluster's log. */
  #mayCreate({ client }: HostedTerminator): boolean {
    return this.#creations.take(client.client.session.identityId)
  }

  async #ask(terminator: HostedTerminator): Promise<void> {
    const { operations, controllerFor, clock } = this.#deps
    const { client } = terminator
    if (controllerFor(client) === null) return
    terminator.isAsked = true
    terminator.dueMs = Infinity
    try {
      await operations.run(client.client.session.identityId, () => this.#askInTurn(terminator))
    } catch {
      terminator.dueMs = clock.monotonicMs() + edgeLimits.terminatorBusyMs
    } finally {
      terminator.isAsked = false
    }
  }

  /**
   * Sends the creation request, once the share of the identity permits it. Resolves when the
   * response was handled by `#onAnswer`, or when it is time to repeat a request without response.
   */
  async #askInTurn(terminator: HostedTerminator): Promise<void> {
    const { controllerFor, postureSettled, clock } = this.#deps
    const { id, client } = terminator
    const controller = controllerFor(client)
    if (controller !== null) await postureSettled(client, controller.id)
    terminator.dueMs = clock.monotonicMs()
    if (this.#byId.get(id) !== terminator || controller === null) return
    if (terminator.isEstablished) return
    terminator.controllerId = controller.id
    terminator.dueMs += edgeLimits.terminatorAgainMs
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waits.set(id, resolve)
    controller.channel.send(terminatorCreationRequest(terminator))
    await promise
    this.#waits.delete(id)
  }

  /**
   * Reports one batch of removed terminators to a controller; the sweep repeats this until
   * controllers have confirmed all.
   */
  async #reportRemoved(): Promise<void> {
    const [controller] = this.#deps.connections()
    if (this.#isRemoving || this.#removed.size === 0 || controller === undefined) return
    this.#isRemoving = true
    const ids = [...this.#removed].slice(0, edgeLimits.terminatorsRemovedAtOnceMax)
    try {
      const reply = await controller.channel.request(removeTerminatorsMessage(ids))
      if (!readFlag(reply.headers, channelHeaderKey.resultSuccess))
        throw new Error(Buffer.from(reply.body).toString())
      for (const id of ids) if (!this.#byId.has(id)) this.#removed.delete(id)
    } catch (error) {
      const fields = { terminators: ids.length, reason: errorMessage(error) }
      this.#deps.log.warn(fields, 'terminators were not removed; trying again')
    } finally {
      this.#isRemoving = false
    }
  }

  /**
   * Reports to the controller which of its terminators exist. Omits terminators whose host was
   * asked and does not respond.
   */
  async #validate(connection: ControlConnection, { body }: ChannelMessage): Promise<void> {
    const { terminators, postCreate, fixInvalid } = readTerminatorQuery(body)
    const own = terminators.slice(0, edgeLimits.hostedMax)
    const states = await Promise.all(
      own.map(async ({ id, binding, marker }) => {
        if (binding !== BINDING) return []
        const found = this.find(id)
        const isThere =
          found === null ? false : postCreate ? true : await this.#isStillHosted(found)
        if (isThere === null) return []
        if (!isThere && found !== null && fixInvalid) this.#drop(found)
        const reason = TerminatorFault.UNKNOWN_TERMINATOR
        return [[id, { valid: isThere, marker, reason, detail: '' }] as const]
      }),
    )
    connection.channel.send(terminatorStatesMessage(Object.fromEntries(states.flat())))
  }

  /** Whether the client still hosts the service; null if it does not respond. */
  async #isStillHosted({ client, connectionId, isInspectable }: HostedTerminator) {
    if (client.channel.isClosed) return false
    if (!isInspectable) return true
    try {
      const request = connectionMessage(edgeContentType.connInspect, connectionId)
      const { headers } = await client.channel.request(request, edgeLimits.hostInspectionMsMax)
      return headers.get(edgeHeaderKey.connType)?.[0] === connectionTypeCode.bind
    } catch {
      return client.channel.isClosed ? false : null
    }
  }
}

const sessionEnded: ConnectionCloseReason = {
  text: 'the session has ended',
  code: edgeErrorCode.invalidSession,
  retryHint: retryHint.startOver,
}
