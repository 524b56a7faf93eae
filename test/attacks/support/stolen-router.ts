import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterAll } from 'vitest'

import { CommandKind, FeatureLevelRaiseSchema } from '../../../proto/gen/command_pb.ts'
import {
  ApiSessionAddedSchema,
  ApiSessionRemovedSchema,
  SessionRemovedSchema,
} from '../../../proto/gen/router_pb.ts'
import { HostedTerminatorFinder } from '../../../src/api/fabric/hosted-terminator-finder.ts'
import { RouterClientAuthorizer } from '../../../src/api/fabric/router-client-authorizer.ts'
import { RouterTunnelAuthorizer } from '../../../src/api/fabric/router-tunnel-authorizer.ts'
import { createServices } from '../../../src/api/services.ts'
import { createHostLookup } from '../../../src/controller/service/routers.ts'
import { CircuitHandler } from '../../../src/fabric/circuits/circuit-handler.ts'
import { createCircuitTable } from '../../../src/fabric/circuits/circuit-table.ts'
import { endUnauthorizedHosting } from '../../../src/fabric/clients/ended-sessions.ts'
import { EndedAccessSweeper } from '../../../src/fabric/clients/ended-access-sweeper.ts'
import { TerminatorHandler } from '../../../src/fabric/clients/terminator-handler.ts'
import { RouterTerminatorWriter } from '../../../src/fabric/clients/router-terminator-writer.ts'
import { UnknownTerminatorHandler } from '../../../src/fabric/circuits/unknown-terminator-handler.ts'
import { SessionHandler } from '../../../src/fabric/clients/session-handler.ts'
import { PresentedSessionTokens } from '../../../src/fabric/clients/presented-session-tokens.ts'
import { TunnelHandler } from '../../../src/fabric/clients/tunnel-handler.ts'
import type { TestController } from '../../api/support/controller.ts'
import { type Pipe, settle } from '../../channel/pipe.ts'
import { RouterStage } from '../../fabric/stage.ts'
import { commandData } from '../../support/commands.ts'

/** Raises the feature level; after that, sessions store the API that opened them. */
export function raiseToSecondLevel({ cluster }: TestController): void {
  const message = create(FeatureLevelRaiseSchema, { level: 2 })
  const payload = toBinary(FeatureLevelRaiseSchema, message)
  cluster.apply(commandData(CommandKind.FEATURE_LEVEL_RAISE, payload))
}

/** Routers at a controller, each of which records everything that it receives. */
export class StolenRouters {
  readonly stage = new RouterStage()
  /**
   * Services through which heartbeats of routers keep sessions alive, in addition to those of the
   * controller.
   */
  readonly services: ReturnType<typeof createServices>
  readonly clients: RouterClientAuthorizer
  readonly tunnels: RouterTunnelAuthorizer
  readonly shown: PresentedSessionTokens
  readonly circuits: CircuitHandler

  constructor({ parts, machine, clock }: TestController) {
    this.services = createServices(parts)
    this.clients = new RouterClientAuthorizer({ ...parts, ...this.services }, machine)
    this.tunnels = new RouterTunnelAuthorizer({ ...parts, ...this.services }, machine)
    this.shown = new PresentedSessionTokens(this.clients, parts.reads, clock)
    const { channels } = this.stage
    channels.add(
      new SessionHandler({
        clients: this.clients,
        shown: this.shown,
        clock,
        isLeader: () => true,
        connections: () => channels.connections(),
        onEnded: (ids) => this.circuits.onSessionsEnded(ids),
      }),
    )
    const connection = channels.connection.bind(channels)
    const log = { info: () => undefined, warn: () => undefined }
    const { proposer } = parts
    const invalid = new UnknownTerminatorHandler({ proposer, log })
    this.circuits = new CircuitHandler({
      onInvalidHost: (host) => invalid.note(host),
      table: createCircuitTable('ctrl1', (id, message) => connection(id)?.channel.send(message)),
      clients: this.shown,
      tunnels: this.tunnels,
      reads: parts.reads,
      clock,
      draw: () => 0,
      hosts: createHostLookup(machine),
      connection,
      log,
      links: parts.links,
    })
    channels.add(this.circuits)
    channels.add(
      new TerminatorHandler({
        clients: this.shown,
        writes: new RouterTerminatorWriter({ proposer, log }),
      }),
    )
    const terminators = new HostedTerminatorFinder(parts, machine)
    channels.add(
      new EndedAccessSweeper({
        terminators,
        proposer,
        log,
        isLeader: () => true,
        endHosting: (terminator) =>
          endUnauthorizedHosting(channels.connection(terminator.routerId), this.shown, terminator),
        endCircuits: (ids, mayUse) => this.circuits.endAtForbidden(ids, mayUse),
      }),
    )
    channels.add(
      new TunnelHandler({
        proposer,
        reads: parts.reads,
        clock,
        log,
        tunnels: this.tunnels,
        writes: new RouterTerminatorWriter({ proposer, log }),
        isLeader: () => true,
        endCircuits: (isGranted) => this.circuits.upkeep.endUngranted(isGranted),
      }),
    )
    afterAll(() => channels.stop())
  }

  async connect(routerId: string): Promise<StolenRouter> {
    return new StolenRouter(await this.stage.dial(routerId))
  }
}

export class StolenRouter {
  readonly pipe: Pipe

  constructor(pipe: Pipe) {
    this.pipe = pipe
  }

  /** The last session token that the router has received for each identity, by identity ID. */
  async tokens(): Promise<ReadonlyMap<string, string>> {
    await settle()
    const told = this.pipe
      .ofType(20_200)
      .flatMap(({ body }) => fromBinary(ApiSessionAddedSchema, body).apiSessions)
    return new Map(told.map(({ identityId, token }) => [identityId, token]))
  }

  /** Tokens of sessions that the controller has removed at the router. */
  async lost(): Promise<readonly string[]> {
    await settle()
    return this.pipe
      .ofType(20_202)
      .flatMap(({ body }) => fromBinary(ApiSessionRemovedSchema, body).tokens)
  }

  /** IDs of service sessions whose end the controller has reported to the router. */
  async ended(): Promise<readonly string[]> {
    await settle()
    return this.pipe
      .ofType(20_102)
      .flatMap(({ body }) => fromBinary(SessionRemovedSchema, body).ids)
  }
}
