import { create, toBinary } from '@bufbuild/protobuf'

import { SessionRemovedSchema, ValidateSessionsSchema } from '../../../proto/gen/router_pb.ts'
import type { Channel } from '../../channel/channel.ts'
import { decodeIncrementally } from '../../channel/wire-scan.ts'
import type { EndedServiceSession, RouterClients } from '../../ports/router-clients.ts'
import type { UnauthorizedTerminator } from '../../ports/hosted-terminators.ts'
import type { RouterConnection } from '../router-connection.ts'
import { routerLimits } from '../limits.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import type { OutboundMessage } from '../../channel/frame.ts'
import type { PresentedSessionTokens } from './presented-session-tokens.ts'

/** Answers a router that asks whether service sessions still exist, with those that have ended. */
export function* sendEndedSessions(
  channel: Pick<Channel, 'send'>,
  clients: Pick<RouterClients, 'goneSession'>,
  body: Uint8Array,
): Generator<void, void> {
  const { sessionTokens } = yield* decodeIncrementally(ValidateSessionsSchema, body)
  const gone: EndedServiceSession[] = []
  for (const token of sessionTokens.slice(0, routerLimits.sessionsValidatedMax)) {
    const found = clients.goneSession(token)
    if (found !== null) gone.push(found)
    // @guard sessions-asked-about--steps
    yield
  }
  if (gone.length === 0) return
  const tokens = gone.map(({ token }) => token)
  channel.send(
    sessionsRemovedMessage(
      tokens,
      gone.map(({ id }) => id),
    ),
  )
}

/**
 * Ends the hosting of clients at a router that they may no longer use while their service sessions
 * continue. A router does not know which routers an OIDC client may use.
 */
export function endUnauthorizedHosting(
  connection: RouterConnection | undefined,
  shown: Pick<PresentedSessionTokens, 'take'>,
  { routerId, sessionIds }: UnauthorizedTerminator,
): void {
  if (sessionIds.length === 0) return
  const tokens = sessionIds.map((id) => shown.take(routerId, id) ?? id)
  connection?.channel.send(sessionsRemovedMessage(tokens, sessionIds))
}

export function sessionsRemovedMessage(
  tokens: readonly string[],
  ids: readonly string[],
): OutboundMessage {
  const removed = create(SessionRemovedSchema, { tokens: [...tokens], ids: [...ids] })
  return {
    contentType: controlContentType.sessionRemoved,
    body: toBinary(SessionRemovedSchema, removed),
  }
}
