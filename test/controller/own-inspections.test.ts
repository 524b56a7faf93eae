import { expect, test } from 'vitest'

import { createOwnInspections } from '../../src/controller/service/own-inspections.ts'
import type { RouterConnection } from '../../src/fabric/router-connection.ts'
import type { RouterModel } from '../../src/ports/router-model.ts'

const router = { router: { id: 'er1', name: 'edge' }, version: { version: 'v2.0.3' } }
const own = createOwnInspections({
  config: { raft: { electionTimeoutMs: 500, heartbeatMs: 50 } as never },
  model: {
    appliedIndex: 7,
    all: () => [{ kind: 'identity' }, { kind: 'service' }, { kind: 'identity' }],
  } as unknown as RouterModel,
  timelineId: () => 'cluster-1:3',
  connections: () => [router as unknown as RouterConnection],
  circuits: () => null,
  peers: () => ({ changedIds: () => ['er2'] }),
  validation: () => null,
  clients: () => ({ byIdentity: () => new Map([['alice', ['er1']]]) }),
})

test('a controller answers inspections about its routers in the format of OpenZiti’s controllers', () => {
  const values = Object.entries(own).map(([name, read]) => [name, read()])
  expect(Object.fromEntries(values)).toEqual({
    'cluster-config': { ElectionTimeout: 500_000_000, HeartbeatTimeout: 50_000_000 },
    'connected-routers': [{ id: 'er1', name: 'edge', version: 'v2.0.3' }],
    'identity-connection-statuses': {
      connections: {
        alice: {
          connected_routers: { er1: { router_id: 'er1', closed: false } },
          last_reported_state: 'online',
        },
      },
    },
    'router-data-model': {
      timeline: 'cluster-1:3',
      index: 7,
      entries: { identity: 2, service: 1 },
    },
    'router-data-model-index': { timeline: 'cluster-1:3', index: 7 },
    'router-messaging': {
      routerUpdates: [
        {
          router: { id: 'er1', name: 'edge' },
          changedRouters: [{ id: 'er2' }],
          sendInProgress: false,
        },
      ],
      terminatorValidations: [],
    },
    'terminator-costs': { terminators: [] },
  })
})
