import type { LatestReads } from '../../ports/latest-reads.ts'
import type { AdmittedClient, RouterClients } from '../../ports/router-clients.ts'
import type { RouterTunnels } from '../../ports/router-tunnels.ts'
import {
  clientAccessFaultCodes,
  clientAccessRefusalMessage,
  dialRefusalErrorCode,
  tunnelAccessFaultCodes,
} from '../clients/client-access-faults.ts'
import { evaluateAgainBeforeRefusal } from '../evaluate-again-before-refusal.ts'
import type {
  CircuitRequest,
  ClientCircuitRequest,
  TunnelCircuitRequest,
} from '../../channel/messages/circuit-requests.ts'
import type { HostLookup } from './host-lookup.ts'
import { peerDataKey } from '../../channel/messages/peer-data.ts'
import { edgeErrorCode } from '../../channel/messages/edge.ts'

/**
 * Session ID of the circuits that routers dial with their own identity, for a tunnel or another
 * listener: empty, because they have no session.
 */
export const NO_SERVICE_SESSION = ''

/** A refused dial; `code` is OpenZiti's error code for clients. */
export class CircuitRefusedError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

export interface DialChecks {
  readonly clients: Pick<RouterClients, 'judge'>
  readonly tunnels: Pick<RouterTunnels, 'judge'>
  readonly hosts: Pick<HostLookup, 'service'>
  readonly reads: Pick<LatestReads, 'reachLatest'>
}

export interface AdmittedDial {
  readonly client: AdmittedClient
  /**
   * Returns whether the dial is still permitted; called once the path is set up, because no session
   * ends when the permissions of a router's identity end. Always true for a client: its dial is
   * canceled when its session ends.
   */
  readonly isGranted: () => boolean
}

export interface RequestingRouter {
  readonly router: { readonly id: string }
  readonly evaluatesPosture: boolean
}

/**
 * Checks whether the client, or the router with its own identity, may dial.
 * @throws {CircuitRefusedError} if not, if the service does not exist, or if the service requires
 * encryption and the request contains no public key.
 */
export async function admitDial(
  judges: DialChecks,
  by: RequestingRouter,
  asked: CircuitRequest,
): Promise<AdmittedDial> {
  const admitted =
    asked.of === 'tunnel'
      ? await admitTunnel(judges, by.router.id, asked)
      : await admitClient(judges, by, asked)
  const service = judges.hosts.service(admitted.client.serviceId)
  if (service === undefined)
    throw new CircuitRefusedError(clientAccessFaultCodes.service, 'no such service')
  // @guard listeners-of-a-router--encryption
  if (service.encryptionRequired && !asked.peerData.has(peerDataKey.publicKey)) {
    throw new CircuitRefusedError(
      edgeErrorCode.encryptionDataMissing,
      'the service is encrypted end to end',
    )
  }
  return admitted
}

async function admitClient(
  { clients }: DialChecks,
  { router, evaluatesPosture: isJudgedByRouter }: RequestingRouter,
  {
    of: _of,
    circuitId: _id,
    instanceId: _instanceId,
    peerData: _peerData,
    ...shown
  }: ClientCircuitRequest,
): Promise<AdmittedDial> {
  const judged = await clients.judge({
    ...shown,
    routerId: router.id,
    isJudgedByRouter,
    type: 'Dial',
  })
  if (!judged.ok) {
    const { fault } = judged
    const code = dialRefusalErrorCode(fault, shown.serviceId !== undefined)
    throw new CircuitRefusedError(code, clientAccessRefusalMessage('dial', fault))
  }
  return { client: judged.client, isGranted: () => true }
}

/**
 * Admits a circuit that a router requests with its own identity, for its tunnel or for another
 * listener. The first of the named services that the identity may dial is chosen.
 */
async function admitTunnel(
  { tunnels, reads }: DialChecks,
  routerId: string,
  { services }: TunnelCircuitRequest,
): Promise<AdmittedDial> {
  const claim = { routerId, type: 'Dial' } as const
  const judge = () => {
    const judgements = services.map((service) => tunnels.judge({ ...claim, service }))
    return judgements.find(({ ok }) => ok) ?? judgements.at(-1)
  }
  const judged = await evaluateAgainBeforeRefusal(reads, judge, (tunnel) => tunnel?.ok !== true)
  if (judged?.ok !== true) {
    const fault = judged?.fault ?? 'service'
    throw new CircuitRefusedError(tunnelAccessFaultCodes[fault], `dial refused: ${fault}`)
  }
  const { serviceId, identityName } = judged
  const sessions = { sessionId: NO_SERVICE_SESSION, apiSessionId: NO_SERVICE_SESSION }
  return {
    client: { ...sessions, serviceId, identityId: routerId, identityName },
    isGranted: () => tunnels.judge({ ...claim, service: { id: serviceId } }).ok,
  }
}
