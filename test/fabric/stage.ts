import type { TLSSocket } from 'node:tls'

import { encodeFlag, encodeBitMask, encodeText } from '../../src/channel/headers.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import { defaultApiLimits } from '../../src/api/limits.ts'
import { ProcessorShare } from '../../src/lib/bounds/processor-share.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { RouterStatus } from '../../proto/gen/soft_pb.ts'
import type { RouterAdmission } from '../../src/fabric/router-admission.ts'
import { RouterChannels, type RouterChannelsDeps } from '../../src/fabric/router-channels.ts'
import { RouterStatusTopic } from '../../src/fabric/router-status-topic.ts'
import { LocalTopic } from '../api/support/local-topic.ts'
import { Pipe, settle } from '../channel/pipe.ts'
import type { LatestReads } from '../../src/ports/latest-reads.ts'
import { ManualFeed } from '../support/manual-feed.ts'

/** Reads of a controller that lags behind; `onLatest` applies the entries that it lacks. */
export function readsThat(onLatest: () => void): Pick<LatestReads, 'reachLatest'> {
  return {
    reachLatest: async () => {
      await Promise.resolve()
      onLatest()
    },
  }
}

/** Reads of a controller that does not lag behind. */
export const upToDate = readsThat(() => undefined)

const version = 'v2.0.3|abc|2026-01-01|linux|amd64'

/** Channels of routers over pipes, to which a test adds handlers. Every router is admitted. */
export class RouterStage {
  readonly lines: string[] = []
  readonly routerIds = new Set<string>()
  /** IDs of routers that may no longer be connected. */
  readonly revoked = new Set<string>()
  readonly statuses = new RouterStatusTopic(
    'ctrl1',
    new LocalTopic<RouterStatus>('ctrl1'),
    systemClock,
  )
  readonly channels: RouterChannels
  certPem = 'pem'
  #next = ''

  constructor(
    processor: RouterChannelsDeps['processor'] = new ProcessorShare(defaultApiLimits, systemClock),
    clock: RouterChannelsDeps['clock'] = systemClock,
  ) {
    const log = (fields: Readonly<Record<string, unknown>>, message: string): void => {
      this.lines.push(`${message} ${String(fields['reason'] ?? '')}`)
    }
    this.channels = new RouterChannels({
      identity: {
        id: 'ctrl1',
        clusterId: 'cluster-1',
        version: { version: 'v2.0.0', revision: 'r', buildDate: 'd', os: 'linux', arch: 'x64' },
      },
      gate: {
        admit: (): RouterAdmission => {
          const router = { id: this.#next, name: this.#next, isEdge: true, certPem: this.certPem }
          return { ok: true, router }
        },
        revoked: ({ id }) =>
          this.revoked.has(id) ? { reason: 'the router was disabled', endsLinks: true } : null,
      },
      cluster: { addresses: () => null, leaderIndex: () => null, unreachable: () => [] },
      statuses: this.statuses,
      clock,
      processor,
      feed: new ManualFeed(),
      log: { info: log, warn: log },
    })
  }

  /** Makes the next socket present the certificate of this router. */
  admitNext(id: string): void {
    this.#next = id
  }

  async dial(id: string, headers: readonly (readonly [number, Uint8Array])[] = []): Promise<Pipe> {
    this.#next = id
    this.routerIds.add(id)
    const pipe = new Pipe()
    this.channels.accept(pipe as unknown as TLSSocket)
    const own: ChannelMessage['headers'] = new Map([
      [4, encodeText(version)],
      [7, encodeText('ctrl.default')],
      [9, encodeFlag(true)],
      [11, encodeFlag(true)],
      [1002, encodeBitMask([1, 2])],
      ...headers,
    ])
    pipe.say({ contentType: 0, sequence: -1, headers: own, body: encodeText(id) })
    await settle()
    return pipe
  }
}
