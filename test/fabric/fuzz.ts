import { parseArgs } from 'node:util'

import { type Random, seededRandom } from '../../src/lib/random.ts'
import { Problem } from '../../src/lib/problems.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import type { RouterClients } from '../../src/ports/router-clients.ts'
import type { RouterModel } from '../../src/ports/router-model.ts'
import { createCertificateHandler } from '../../src/fabric/certificate-handler.ts'
import { CircuitHandler } from '../../src/fabric/circuits/circuit-handler.ts'
import { createCircuitTable } from '../../src/fabric/circuits/circuit-table.ts'
import { AlertHandler } from '../../src/fabric/alert-handler.ts'
import { ConnectionHandler } from '../../src/fabric/clients/connection-handler.ts'
import { SessionHandler } from '../../src/fabric/clients/session-handler.ts'
import { PresentedSessionTokens } from '../../src/fabric/clients/presented-session-tokens.ts'
import { RouterTerminatorWriter } from '../../src/fabric/clients/router-terminator-writer.ts'
import { RouterTerminatorValidator } from '../../src/fabric/clients/router-terminator-validator.ts'
import { TerminatorHandler } from '../../src/fabric/clients/terminator-handler.ts'
import { createLinkHandler } from '../../src/fabric/links/link-handler.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import { RouterPeersHandler } from '../../src/fabric/links/router-peers-handler.ts'
import { controlContentType } from '../../src/channel/messages/control.ts'
import { ModelHandler } from '../../src/fabric/model/model-handler.ts'
import type { RouterChannelsDeps } from '../../src/fabric/router-channels.ts'
import { settle } from '../channel/pipe.ts'
import { TunnelHandler } from '../../src/fabric/clients/tunnel-handler.ts'
import { Tunnels } from './tunnels.ts'
import { RouterStage, upToDate } from './stage.ts'

// Sends messages of every type with invalid bytes, in bodies and headers, from an admitted router.
// Only its channel may be closed. `node test/fabric/fuzz.ts --messages 1000000 --seed 1`.

const log = { info: () => undefined, warn: () => undefined }
const types = [...Object.values(controlContentType), 3, 4, 5, 99, -1, 2 ** 30]
/** Keys of headers that handlers read. */
const keys = [1, 2, 5, 6, 10, 11, 12, 13, 14, 128, 1014, 1022, 1024, 1025, 1101, 1102, 1103, 1104]

export const admittingClients: RouterClients = {
  sessionIds: () => [],
  session: () => null,
  routersOf: () => new Set(),
  sessionFilterOf: () => ({ key: '', has: () => false }),
  tokensOf: () => [],
  follow: () => () => undefined,
  used: () => undefined,
  goneSession: (token) => ({ token, id: token }),
  report: () => Promise.resolve(true),
  judge: () =>
    Promise.resolve({
      ok: true,
      client: {
        sessionId: 's',
        apiSessionId: 'a',
        serviceId: 's1',
        identityId: 'i',
        identityName: 'i',
      },
    }),
}
const model: RouterModel = {
  appliedIndex: 5,
  all: () => [],
  identity: () => undefined,
  disabledForNow: () => [],
  follow: () => () => undefined,
}

/** All channel handlers of a controller, with routers that are connected by pipes. */
export function dutiesStage(processor?: RouterChannelsDeps['processor']): {
  readonly stage: RouterStage
  readonly links: LinkTable
} {
  const stage = new RouterStage(processor)
  const { channels } = stage
  const connections = () => channels.connections()
  const connection = (id: string) => channels.connection(id)
  const links = new LinkTable({
    owner: 'ctrl1',
    isBarred: () => false,
    isConnected: () => true,
    sendGone: () => undefined,
    onGone: () => undefined,
  })
  const proposer = {
    propose: () => Promise.reject(new Problem('CLUSTER_NO_LEADER')),
    judge: () => undefined,
  }
  const hosts = {
    service: () => undefined,
    routerCost: () => 10,
    isEndOnly: () => false,
  }
  const clients = admittingClients
  const shown = new PresentedSessionTokens(clients, upToDate, systemClock)
  const tunnels = new Tunnels()
  const writes = new RouterTerminatorWriter({ proposer, log })
  const circuits = new CircuitHandler({
    table: createCircuitTable('ctrl1', (id, message) => connection(id)?.channel.send(message)),
    clients,
    tunnels,
    links,
    log,
    reads: upToDate,
    clock: systemClock,
    draw: () => 0,
    hosts,
    connection,
  })
  for (const handler of [
    circuits,
    new RouterPeersHandler({ routerIds: () => ['er1', 'er2'], connections }),
    createLinkHandler({
      table: links,
      log,
      isCertificateOf: () => false,
      onOtherFault: (...fault) => circuits.upkeep.onFault(...fault),
      onLinksReported: (...links) => circuits.upkeep.onLinksReported(...links),
    }),
    new ModelHandler({
      model,
      connections,
      log,
      clock: systemClock,
      isLeader: () => true,
      timelineId: () => 't',
      certificates: () => ({ controllers: [], anchors: [] }),
    }),
    new SessionHandler({
      clients,
      connections,
      clock: systemClock,
      isLeader: () => true,
      shown,
      onEnded: (ids) => circuits.onSessionsEnded(ids),
    }),
    new TerminatorHandler({ clients: shown, writes }),
    new RouterTerminatorValidator({
      writes,
      log,
      clock: systemClock,
      isLeader: () => true,
      terminators: { ofRouter: () => [] },
    }),
    new TunnelHandler({
      tunnels,
      writes,
      proposer,
      reads: upToDate,
      log,
      clock: systemClock,
      isLeader: () => true,
      endCircuits: (isGranted) => circuits.upkeep.endUngranted(isGranted),
    }),
    new ConnectionHandler(),
    new AlertHandler(() => undefined, log),
    createCertificateHandler({
      state: { featureLevel: FEATURE_LEVEL },
      proposer,
      log,
      anchorsPem: () => '',
      certifier: { extend: () => Promise.reject(new Problem('COULD_NOT_PROCESS_CSR')) },
    }),
  ]) {
    channels.add(handler)
  }
  return { stage, links }
}

function bytes(random: Random, sizeMax: number): Uint8Array {
  const made = new Uint8Array(random.integer(0, sizeMax))
  // Often small numbers, because they are more likely to be valid tags and lengths of protobuf.
  const top = random.next() < 0.5 ? 40 : 255
  for (let at = 0; at < made.length; at += 1) made[at] = random.integer(0, top)
  return made
}

/** @returns how many messages closed the channel of their sender. */
export async function fuzzRouters(messages: number, seed: number): Promise<number> {
  const random = seededRandom(seed)
  const { stage, links } = dutiesStage()
  let closed = 0
  await stage.dial('er1')
  for (let at = 0; at < messages; at += 1) {
    const connection = stage.channels.connection('er1')
    if (connection === undefined || connection.channel.isClosed) {
      closed += 1
      await stage.dial('er1')
      continue
    }
    const headers = new Map<number, Uint8Array>()
    for (let count = random.integer(0, 4); count > 0; count -= 1) {
      headers.set(keys[random.integer(0, keys.length - 1)] ?? 1, bytes(random, 40))
    }
    const contentType = types[random.integer(0, types.length - 1)] ?? 0
    connection.onMessage({ contentType, sequence: at, headers, body: bytes(random, 60) })
    if (at % 64 === 0) await settle()
    if (at % 1024 === 0) stage.channels.sweep()
  }
  await settle()
  if (links.list().length > 8192) throw new Error('one router has more links than it may have')
  stage.channels.stop()
  return closed
}

if (import.meta.main) {
  const { values: options } = parseArgs({
    options: {
      messages: { type: 'string', default: '1000000' },
      seed: { type: 'string', default: '1' },
    },
  })
  const beganMs = performance.now()
  const closed = await fuzzRouters(Number(options.messages), Number(options.seed))
  const seconds = ((performance.now() - beganMs) / 1000).toFixed(1)
  const mebibytes = Math.round(process.memoryUsage().rss / 2 ** 20)
  console.log(
    `${options.messages} messages in ${seconds} s: ${closed} closed the channel, ${mebibytes} MiB`,
  )
}
