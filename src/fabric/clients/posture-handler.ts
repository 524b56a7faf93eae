import {
  type ClientPosture,
  ClientPostureSchema,
  type PostureResponse,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { decodeIncrementally } from '../../channel/wire-scan.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { Problem } from '../../lib/problems.ts'
import { extractHexDigits } from '../../lib/text/hex-digits.ts'
import type { PostureReport } from '../../ports/posture.ts'
import type { RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { routerLimits } from '../limits.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import type { RouterLogger } from '../router-channels.ts'
import type { PresentedSessionTokens } from './presented-session-tokens.ts'

export interface PostureHandlerDeps {
  readonly clients: Pick<PresentedSessionTokens, 'report'>
  readonly log: RouterLogger
}

/**
 * Handles posture reports of OIDC clients. The clients send them to routers, the routers forward
 * them to controllers, and the controllers evaluate them.
 */
export class PostureHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #deps: PostureHandlerDeps

  constructor(deps: PostureHandlerDeps) {
    this.#deps = deps
    this.handlers = new Map([
      [controlContentType.clientPosture, (connection, message) => this.#take(connection, message)],
    ])
  }

  *#take(connection: RouterConnection, message: ChannelMessage): Generator<void, void> {
    const reported = yield* decodeIncrementally(ClientPostureSchema, message.body)
    void this.#report(connection, message, reported)
  }

  async #report(
    { channel, router }: RouterConnection,
    message: ChannelMessage,
    { apiSessionToken, fingerprints, posture }: ClientPosture,
  ): Promise<void> {
    const { clients, log } = this.#deps
    const responses = posture?.responses ?? []
    const refuse = (reason: string): void => void channel.replyResult(message, false, reason)
    try {
      const reports = responses.flatMap(reportsOf)
      if (reports.length > routerLimits.postureReportsMax) {
        refuse('too many reports at once')
        return
      }
      const client = { routerId: router.id, apiSessionToken, fingerprints }
      const isTaken = reports.length === 0 || (await clients.report(client, reports))
      if (isTaken) channel.replyResult(message, true)
      else refuse('the client has no such session')
    } catch (error) {
      const reason = errorMessage(error)
      if (!(error instanceof Problem)) {
        log.warn({ routerId: router.id, reason }, 'posture of a client cannot be taken')
      }
      refuse(reason)
    }
  }
}

/** Empty, because a posture report that arrives through a router does not name a check. */
const checkId = ''

/**
 * The posture reports in a client's message. A token that confirms an MFA code is ignored, because
 * the controllers issued the token and have stored the confirmation.
 */
function reportsOf({ type }: PostureResponse): readonly PostureReport[] {
  switch (type.case) {
    case 'os': {
      const { type: name, version, build } = type.value
      return [{ kind: 'os', checkId, type: name, version, build }]
    }
    case 'domain':
      return [{ kind: 'domain', checkId, domain: type.value.name }]
    case 'macs':
      return [{ kind: 'mac', checkId, addresses: type.value.addresses.map(extractHexDigits) }]
    case 'processList':
      return type.value.processes.map(({ path, isRunning, hash, signerFingerprints }) => ({
        kind: 'process',
        checkId,
        path,
        isRunning,
        hash: extractHexDigits(hash),
        signerFingerprints: signerFingerprints.map(extractHexDigits),
      }))
    case 'woken':
      return [{ kind: 'endpoint', isWoken: true, isUnlocked: false }]
    case 'unlocked':
      return [{ kind: 'endpoint', isWoken: false, isUnlocked: true }]
    case undefined:
      return []
  }
}
