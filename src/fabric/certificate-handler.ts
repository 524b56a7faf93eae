import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { hash, X509Certificate } from 'node:crypto'

import {
  CommandKind,
  RouterExtendSchema,
  RouterExtendVerifySchema,
} from '../../proto/gen/command_pb.ts'
import {
  ExtendRouterSchema,
  RouterCertificatesSchema,
  RouterErrorSchema,
  VerifyRouterCertificateSchema,
} from '../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../channel/frame.ts'
import { Problem } from '../lib/problems.ts'
import { errorMessage } from '../lib/error-code.ts'
import { type Actor, createEnrollmentActor } from '../ports/actor.ts'
import type { RouterCertifier } from '../ports/certificate-issuer.ts'
import { routerRenewalCommandKind } from '../ports/feature-level.ts'
import type { ProposalInput, Proposer } from '../ports/proposer.ts'
import type { StateView } from '../ports/state-view.ts'
import type { RouterConnection } from './router-connection.ts'
import type { ChannelHandler } from './channel-handler.ts'
import { controlContentType } from '../channel/messages/control.ts'
import type { RouterLogger } from './router-channels.ts'

/** A proposer that can refuse a write before its caller does expensive work for it. */
export interface PrecheckingProposer extends Proposer {
  /** @throws {Problem} SERVER_TOO_MANY_REQUESTS */
  judge(write: Pick<ProposalInput, 'actor' | 'kind'>): void
}

interface CertificateHandlerDeps {
  readonly state: Pick<StateView, 'featureLevel'>
  readonly certifier: Pick<RouterCertifier, 'extend'>
  readonly proposer: PrecheckingProposer
  /** Trust anchors of the network, PEM. */
  readonly anchorsPem: () => string
  readonly log: RouterLogger
}

/**
 * Issues new certificates to routers that request them. The old certificates stay valid until the
 * router confirms the new ones or connects with them, so a router that loses the response continues
 * with the old ones. Exception: below `ROUTER_RENEWAL_FEATURE_LEVEL`, new certificates that the
 * router does not confirm replace the old ones immediately.
 */
export function createCertificateHandler(deps: CertificateHandlerDeps): ChannelHandler {
  return {
    handlers: new Map([
      [
        controlContentType.enrollmentExtendRouter,
        (connection, message) =>
          answered(deps, connection, message, () => extend(deps, connection, message)),
      ],
      [
        controlContentType.enrollmentExtendRouterVerify,
        (connection, message) =>
          answered(deps, connection, message, () => verify(deps, connection, message)),
      ],
    ]),
  }
}

async function extend(
  { state, certifier, proposer, anchorsPem }: CertificateHandlerDeps,
  connection: RouterConnection,
  { body }: ChannelMessage,
): Promise<void> {
  const { router, channel } = connection
  const { clientCertCsr, serverCertCsr, requireVerification } = fromBinary(ExtendRouterSchema, body)
  const kind = requireVerification
    ? CommandKind.ROUTER_EXTEND_BEGIN
    : routerRenewalCommandKind(state.featureLevel)
  // Checked first, because creating the two signatures costs far more than sending the request.
  // @guard audit-pushed-out--signed
  proposer.judge({ kind, actor: actorOf(connection) })
  const requests = { client: clientCertCsr, server: serverCertCsr }
  const { client, server } = await certifier.extend(router.id, requests, router.id)
  const { chainPem: pem, fingerprint, publicKeyPrint } = client
  const { chainPem: serverPem, hosts: serverNames } = server
  const message = create(RouterExtendSchema, {
    routerId: router.id,
    fingerprint: fingerprintOf(router.certPem),
    certificates: {
      client: { pem, fingerprint, publicKeyPrint },
      serverPem,
      serverNames: [...serverNames],
    },
  })
  await write(proposer, connection, {
    kind,
    payload: toBinary(RouterExtendSchema, message),
  })
  const certificates = create(RouterCertificatesSchema, {
    clientCertPem: pem,
    serverCertPem: serverPem,
    caCertsPem: anchorsPem(),
  })
  if (requireVerification) connection.offeredCertPem = pem
  // Sent as a new message instead of a reply, because routers recognize it by its content type.
  channel.send({
    contentType: controlContentType.enrollmentCertsResponse,
    body: toBinary(RouterCertificatesSchema, certificates),
  })
}

async function verify(
  { proposer, log }: CertificateHandlerDeps,
  connection: RouterConnection,
  message: ChannelMessage,
): Promise<void> {
  const { router, channel } = connection
  const { clientCertPem } = fromBinary(VerifyRouterCertificateSchema, message.body)
  const fingerprint = fingerprintOf(clientCertPem)
  const verified = create(RouterExtendVerifySchema, { routerId: router.id, fingerprint })
  await write(proposer, connection, {
    kind: CommandKind.ROUTER_EXTEND_VERIFY,
    payload: toBinary(RouterExtendVerifySchema, verified),
  })
  connection.confirmOfferedCertificate()
  log.info({ routerId: router.id, name: router.name }, 'router certificates renewed')
  // A reply without an error code reports success.
  channel.reply(message, {
    contentType: controlContentType.error,
    body: toBinary(RouterErrorSchema, create(RouterErrorSchema)),
  })
}

function actorOf({ router, address }: RouterConnection): Actor {
  return createEnrollmentActor({ routerId: router.id }, { method: 'channel', address })
}

/** Proposes a write. @throws {Problem} when the write is rejected or its outcome is unknown. */
async function write(
  proposer: Proposer,
  connection: RouterConnection,
  command: { readonly kind: CommandKind; readonly payload: Uint8Array },
): Promise<void> {
  const { outcome } = await proposer.propose({ ...command, actor: actorOf(connection) })
  if (outcome.ok) return
  const { code, detail } = outcome
  throw new Problem(code, detail === null ? {} : { detail })
}

async function answered(
  { log }: CertificateHandlerDeps,
  { router, channel }: RouterConnection,
  message: ChannelMessage,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (error) {
    const code = error instanceof Problem ? error.code : 'UNHANDLED'
    const text = errorMessage(error)
    log.warn({ routerId: router.id, reason: text }, 'cannot renew the certificates of a router')
    const answer = create(RouterErrorSchema, {
      code,
      message: error instanceof Problem ? text : 'the certificates could not be issued',
    })
    channel.reply(message, {
      contentType: controlContentType.error,
      body: toBinary(RouterErrorSchema, answer),
    })
  }
}

/**
 * Hex SHA-1 of the first certificate in the PEM string.
 * @throws {Problem} when the string contains no certificate.
 */
function fingerprintOf(pem: string): string {
  try {
    return hash('sha1', new X509Certificate(pem).raw)
  } catch {
    throw new Problem('CERT_FAILED_VALIDATION')
  }
}
