import type { RouterConfig } from '../../config/router/table.ts'
import {
  DialFailure,
  type LocalCircuits,
  type TerminatorDialer,
} from '../../overlay/circuits/circuit-endpoint.ts'
import { xgressOptions } from '../../overlay/circuits/xgress-options.ts'
import { socketLimits } from '../../overlay/sockets/limits.ts'
import { DatagramDialer } from './datagram-dialer.ts'
import { StreamDialer, type StreamDialerDeps } from './stream-dialer.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'

export interface DialersDeps extends Pick<StreamDialerDeps, 'caPem' | 'ownPorts' | 'sockets'> {
  readonly config: RouterConfig['dialers']
  readonly circuits: LocalCircuits
}

type DialerConfig = RouterConfig['dialers'][number]

/**
 * Dialers of terminators, by binding. A router dials only for the bindings in its configuration, so
 * its operator decides which connections leave the network at this router.
 */
export function terminatorDialers(deps: DialersDeps): ReadonlyMap<string, TerminatorDialer> {
  // If the configuration has several entries for a binding, the last one counts, as in OpenZiti
  // routers.
  const dialers = new Map<string, TerminatorDialer>(
    deps.config.map((each) => [each.binding, dialerOf(each, deps)]),
  )
  // Controllers use the binding `udp` for a terminator that was created with a `udp:` address and
  // without a binding.
  const datagrams = dialers.get('transport_udp')
  if (datagrams !== undefined) dialers.set('udp', datagrams)
  return dialers
}

function dialerOf(
  { binding, options }: DialerConfig,
  { circuits, caPem, ownPorts, sockets }: DialersDeps,
): TerminatorDialer {
  if (binding !== 'transport' && binding !== 'transport_udp') return listenerOnly(binding)
  const flow = xgressOptions(options)
  const datagrams = new DatagramDialer({
    circuits,
    sockets,
    flow,
    idleMs: socketLimits.datagramsIdleMs,
  })
  if (binding === 'transport_udp') return datagrams
  const connectTimeoutMs = options.connectTimeout
  const streams = new StreamDialer({
    circuits,
    sockets,
    flow,
    caPem,
    ownPorts,
    connectTimeoutMs,
  })
  return {
    dial: (request, signal) =>
      (request.destination.startsWith('udp:') ? datagrams : streams).dial(request, signal),
  }
}

function listenerOnly(binding: string): TerminatorDialer {
  const reason = `the binding ${binding} is for listeners: no router can dial a terminator of it; use transport or transport_udp`
  return {
    dial: () => Promise.reject(new DialFailure(dialErrorCodes.misconfiguredTerminator, reason)),
  }
}
