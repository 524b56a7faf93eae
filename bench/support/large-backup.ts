import { readFileSync } from 'node:fs'

import { CommandKind } from '../../proto/gen/command_pb.ts'
import { loadBackup } from '../../src/backup/load-backup.ts'
import { readFileChunks, writeNewBackup } from '../../src/backup/backup-files.ts'
import { BackupWriter } from '../../src/backup/write-backup.ts'
import { normalizeBody } from '../../src/entities/normalize-body.ts'
import { findEntity } from '../../src/entities/registry.ts'
import { applyLogEntry } from '../../src/fsm/apply-log-entry.ts'
import { currentStorePosition } from '../../src/fsm/records/write-behind.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { LogWriter } from '../../test/fsm/support/log.ts'
import { commandData } from '../../test/support/commands.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

/**
 * Adds identities to the state by the same commands as enrollments do, but without writing them to
 * a log.
 */
function fill(state: ClusterState, identities: number, certificatePem: string): void {
  const create = (entity: string, id: string, fields: JsonObject): void => {
    const payload = LogWriter.write(entity, id, fields)
    const data = commandData(CommandKind.ENTITY_CREATE, payload)
    const index = state.position.index + 1
    const { term } = state.position
    const { outcome } = applyLogEntry(state, {
      index,
      term,
      timeMs: Date.now(),
      type: 'command',
      data,
    })
    if (outcome?.ok !== true) throw new Error(`refused: ${JSON.stringify(outcome)}`)
  }
  for (let n = 0; n < identities; n += 1) {
    const id = `bench-${n}`
    const body = { name: `device ${n}`, type: 'Device', isAdmin: false, roleAttributes: ['all'] }
    create('identity', id, normalizeBody(findEntity('identity'), 'create', body).fields)
    const fingerprint = n.toString(16).padStart(40, '0')
    create('authenticator', `cert-${n}`, {
      identityId: id,
      method: 'cert',
      certPem: certificatePem,
      fingerprint,
    })
  }
}

/** Writes a backup of a large network, made from a backup of a new cluster. */
export async function makeLarge(
  small: string,
  large: string,
  identities: number,
  certificatePath: string,
): Promise<void> {
  const store = new MemoryStateStore()
  const { state, manifest, secrets } = await loadBackup(readFileChunks(small), store, {
    privateKeyPem: null,
  })
  fill(state, identities, readFileSync(certificatePath, 'utf8'))
  await store.write(state.takeDirty(), currentStorePosition(state))
  const { format: _format, encryption: _encryption, ...origin } = manifest
  const writer = await BackupWriter.begin({
    origin,
    snapshot: await store.snapshot(),
    secrets,
    recipient: null,
  })
  await writeNewBackup(large, writer.chunks())
}
