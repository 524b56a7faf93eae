import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { StateMachine } from '../../fsm/machine.ts'
import type { Host, HostedService, Hosts } from '../../fabric/circuits/hosts.ts'

/**
 * Minimum cost of a router in a path: of two paths with the same latency, the one with fewer
 * routers wins.
 */
const ROUTER_COST_MIN = 10

/** Terminators from the records, in the form that circuits need. */
export function hostsOf(machine: Pick<StateMachine, 'get' | 'findAll'>): Hosts {
  return {
    service: (serviceId) => {
      const service = machine.get('service', serviceId)
      if (service === undefined) return undefined
      const { encryptionRequired, terminatorStrategy: strategy } = service
      const { maxIdleTimeMillis: maxIdleTimeMs } = service
      const all = machine.findAll('terminator', 'serviceId', serviceId)
      const hosts = all.map(hostOf)
      return { encryptionRequired, maxIdleTimeMs, strategy, hosts } satisfies HostedService
    },
    routerCost: (id) => Math.max(machine.get('router', id)?.cost ?? 0, ROUTER_COST_MIN),
    isEndOnly: (id) => machine.get('router', id)?.noTraversal === true,
  }
}

function hostOf(terminator: Terminator): Host {
  const { id, routerId, hostId, binding, address, cost, precedence, instanceId } = terminator
  const peerData = new Map<number, Uint8Array>()
  for (const [key, value] of Object.entries(terminator.peerData)) {
    peerData.set(Number(key), new Uint8Array(Buffer.from(value, 'base64')))
  }
  return {
    terminatorId: id,
    routerId,
    hostId,
    isMadeByRouter: terminator.isSystem,
    binding,
    address,
    cost,
    precedence,
    instanceId,
    peerData,
  }
}
