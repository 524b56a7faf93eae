import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { defaultLimits } from '../src/api/limits.ts'
import { traceMsMax } from '../src/api/operations/identity-trace.ts'
import { inspectionLimits } from '../src/api/schemas-inspections.ts'
import { tracesMax } from '../src/api/traces.ts'
import { lineLimits } from '../src/cli/line-writer.ts'
import { admissionLimits } from '../src/cluster/admission.ts'
import { SEED_LIMITS } from '../src/cluster/addresses-seeds.ts'
import { CLAIM_LIMITS } from '../src/cluster/addresses.ts'
import { defaultGatewayOptions } from '../src/cluster/gateway.ts'
import { HELLO_LIMITS } from '../src/cluster/handshake.ts'
import { membershipLimits } from '../src/cluster/membership/limits.ts'
import { failedRequestLimits } from '../src/cluster/failed-requests.ts'
import { FRAME_BYTES_MAX } from '../src/cluster/mesh-service.ts'
import { postureLimits } from '../src/cluster/posture-board.ts'
import { quarantineLimits } from '../src/cluster/quarantine.ts'
import { ROSTER_LIMITS } from '../src/cluster/roster.ts'
import { defaultSnapshotReceiverOptions } from '../src/cluster/snapshot-receiver.ts'
import { defaultSnapshotSenderOptions } from '../src/cluster/snapshot-sender.ts'
import { classViewLimits } from '../src/fsm/access/class-views.ts'
import { disableMinutesMax } from '../src/fsm/commands/identity.ts'
import { casMax } from '../src/fsm/rules/ca.ts'
import { revocationLimits } from '../src/fsm/rules/revocation.ts'
import { serviceConfigsPerIdentityMax } from '../src/fsm/commands/service-configs.ts'
import { auditLimits } from '../src/fsm/audit-log.ts'
import { auditQueryLimits } from '../src/fsm/audit-query.ts'
import { batchLimits } from '../src/fsm/commands/entity.ts'
import { integrityLimits } from '../src/fsm/commands/integrity.ts'
import { serviceSessionLimits } from '../src/fsm/commands/service-session.ts'
import { joiningLimits } from '../src/fsm/commands/cluster.ts'
import { secretLimits } from '../src/fsm/commands/secret.ts'
import { stateDeskLimits } from '../src/cluster/state-desk.ts'
import { defaultSoftStateOptions } from '../src/cluster/soft-state.ts'
import { apiSessionsMax, apiSessionsPerIdentityMax } from '../src/fsm/commands/session.ts'
import {
  requestAheadMsMax,
  requestsMax,
  requestsPerCallerMax,
  requestWindowMs,
} from '../src/fsm/dedupe.ts'
import { pageLimits } from '../src/fsm/query/list.ts'
import { queryLimits } from '../src/fsm/query/scanner.ts'
import { writeBehindDefaults } from '../src/fsm/write-behind.ts'
import { fieldLimits } from '../src/entities/fields.ts'
import { ENTRY_BODY_BYTES_MAX } from '../src/raft/entry-codec.ts'
import { defaultRaftNodeLimits } from '../src/raft/node.ts'
import { defaultCoreOptions } from '../src/raft/options.ts'
import { DAMAGED_BYTES_MAX } from '../src/store/repair-log.ts'
import { snapshotFileLimits } from '../src/store/snapshot-files.ts'

// docs/limits.md says what each limit is for; this holds its figures to those of the code.

const page = join(import.meta.dirname, '../docs/limits.md')

const { retention, ...gateway } = defaultGatewayOptions
const tables: Readonly<Record<string, object>> = {
  'src/api/limits.ts': defaultLimits,
  'src/api/schemas-inspections.ts': inspectionLimits,
  'src/api/traces.ts': { tracesMax },
  'src/api/operations/identity-trace.ts': { traceMsMax },
  'src/fsm/query/list.ts': pageLimits,
  'src/fsm/query/scanner.ts': queryLimits,
  'src/fsm/dedupe.ts': {
    requestWindowMs,
    requestAheadMsMax,
    requestsMax,
    requestsPerCallerMax,
  },
  'src/fsm/commands/session.ts': { apiSessionsMax, apiSessionsPerIdentityMax },
  'src/entities/fields.ts': fieldLimits,
  'src/fsm/commands/identity.ts': { disableMinutesMax },
  'src/fsm/commands/service-configs.ts': { serviceConfigsPerIdentityMax },
  'src/fsm/rules/ca.ts': { casMax },
  'src/fsm/rules/revocation.ts': revocationLimits,
  'src/fsm/commands/service-session.ts': serviceSessionLimits,
  'src/fsm/access/class-views.ts': classViewLimits,
  'src/fsm/commands/cluster.ts': joiningLimits,
  'src/fsm/commands/secret.ts': secretLimits,
  'src/fsm/commands/entity.ts': batchLimits,
  'src/fsm/commands/integrity.ts': integrityLimits,
  'src/fsm/audit-log.ts': auditLimits,
  'src/fsm/audit-query.ts': auditQueryLimits,
  'src/fsm/write-behind.ts': writeBehindDefaults,
  'src/cli/line-writer.ts': lineLimits,
  'src/cluster/gateway.ts': {
    ...gateway,
    retainEntries: retention.entries,
    retainBytes: retention.bytes,
    catchUpBytes: retention.catchUpBytes,
  },
  'src/cluster/admission.ts': admissionLimits,
  'src/cluster/handshake.ts': HELLO_LIMITS,
  'src/cluster/membership/limits.ts': membershipLimits,
  'src/cluster/roster.ts': ROSTER_LIMITS,
  'src/cluster/addresses.ts': CLAIM_LIMITS,
  'src/cluster/addresses-seeds.ts': SEED_LIMITS,
  'src/cluster/mesh-service.ts': { FRAME_BYTES_MAX },
  'src/cluster/snapshot-receiver.ts': defaultSnapshotReceiverOptions,
  'src/cluster/snapshot-sender.ts': defaultSnapshotSenderOptions,
  'src/cluster/quarantine.ts': quarantineLimits,
  'src/cluster/state-desk.ts': stateDeskLimits,
  'src/cluster/soft-state.ts': defaultSoftStateOptions,
  'src/cluster/posture-board.ts': postureLimits,
  'src/cluster/failed-requests.ts': failedRequestLimits,
  'src/raft/entry-codec.ts': { ENTRY_BODY_BYTES_MAX },
  'src/store/repair-log.ts': { DAMAGED_BYTES_MAX },
  'src/store/snapshot-files.ts': snapshotFileLimits,
  'src/raft/options.ts': defaultCoreOptions,
  'src/raft/node.ts': defaultRaftNodeLimits,
}

function rows(limits: object): string {
  return Object.entries(limits)
    .map(([name, value]) => `| \`${name}\` | ${Number(value).toLocaleString('en-US')} |`)
    .join('\n')
}

function text(): string {
  const parts = Object.entries(tables).map(
    ([file, limits]) => `## \`${file}\`\n\n| limit | default |\n|---|---|\n${rows(limits)}\n`,
  )
  return `# Limits

Everything that can grow has an end. Names carry their unit last; what happens at the limit stands beside each in the file
that the heading names. Those that an operator may move are options of [configuration.md](configuration.md); the rest are
part of the program.

What a caller meets: 413 for a body, 431 for headers, 400 for a filter, 429 \`SERVER_TOO_MANY_REQUESTS\` with
\`Retry-After\` for too much at once, 503 \`TIMEOUT\` for too long. Page sizes are clamped silently, as the API family does;
a list that is asked for whole (\`limit=-1\`, \`limit none\`) is never cut off: it is made in turns that other requests have theirs
between, and refused with 400 on \`limit\` beyond its bound of rows or bytes, which is lower for whoever is no administrator. Its
rows are each as of their turn, so a change that comes meanwhile may show in some of them, as it may between two pages.

${parts.join('\n')}`
}

test('docs/limits.md holds the figures of the code', () => {
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(page, text())
  expect(readFileSync(page, 'utf8'), 'FLOTILLA_RECORD=1 writes it anew').toBe(text())
})
