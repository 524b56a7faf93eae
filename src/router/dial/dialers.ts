import type { RouterConfig } from '../../config/router/table.ts'
import {
  dialError,
  DialFailure,
  type LocalCircuits,
  type TerminatorDialer,
} from '../forward/circuit-ends.ts'
import { routerProgramLimits } from '../limits.ts'
import { DatagramDialer } from './datagram-dialer.ts'
import { StreamDialer, type StreamDialerParts } from './stream-dialer.ts'

export interface DialersParts extends Pick<StreamDialerParts, 'caPem' | 'ownPorts'> {
  readonly config: RouterConfig['dialers']
  readonly circuits: LocalCircuits
}

/** Dialers of terminators by their binding, for all bindings that `dialers` may configure. */
export function terminatorDialers(parts: DialersParts): ReadonlyMap<string, TerminatorDialer> {
  const { circuits, config } = parts
  // The last entry of a binding counts; one without an entry has the defaults.
  const options = config.findLast(({ binding }) => binding === 'transport')?.options
  const streams = new StreamDialer({ ...parts, connectTimeoutMs: options?.connectTimeout ?? 0 })
  const datagrams = new DatagramDialer({ circuits, idleMs: routerProgramLimits.datagramsIdleMs })
  const transport: TerminatorDialer = {
    dial: (request, signal) =>
      (request.destination.startsWith('udp:') ? datagrams : streams).dial(request, signal),
  }
  return new Map([
    ['transport', transport],
    ['transport_udp', datagrams],
    ['proxy', listenerOnly('proxy')],
    ['proxy_udp', listenerOnly('proxy_udp')],
  ])
}

function listenerOnly(binding: string): TerminatorDialer {
  const reason = `the binding ${binding} is for listeners: no router can dial a terminator of it; use transport or transport_udp`
  return {
    dial: () => Promise.reject(new DialFailure(dialError.misconfiguredTerminator, reason)),
  }
}
