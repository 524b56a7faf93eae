import { fromBinary } from '@bufbuild/protobuf'

import { PeerStateChangesSchema } from '../../../proto/gen/router_pb.ts'
import { parseAddress } from '../../config/router/values.ts'
import { linkLimits } from './limits.ts'
import type { PeerListener } from '../../channel/messages/links.ts'

/** State of another router in a controller's report. */
export interface PeerChange {
  readonly id: string
  readonly state: 'healthy' | 'unhealthy' | 'removed'
  readonly version: string
  readonly listeners: readonly PeerListener[]
}

const states = ['healthy', 'unhealthy', 'removed'] as const

/**
 * Skips addresses that links cannot use.
 * @throws when the bytes cannot be decoded.
 */
export function readPeerChanges(body: Uint8Array): readonly PeerChange[] {
  const { peersMax, peerListenersMax } = linkLimits
  return fromBinary(PeerStateChangesSchema, body)
    .changes.slice(0, peersMax)
    .flatMap(({ id, state, version, listeners }): PeerChange[] => {
      const found = states[state]
      if (found === undefined || id === '') return []
      const usable = listeners
        .filter(({ address }) => parseAddress(address)?.protocol === 'tls')
        .slice(0, peerListenersMax)
        .map(({ address, groups }) => ({ address, groups }))
      return [{ id, state: found, version, listeners: usable }]
    })
}
