import { expect, test } from 'vitest'

import { ClusterActionRecorder, runWithAudit } from '../../src/cluster/action-recorder.ts'
import { startController } from '../api/support/controller.ts'
import { anySession } from '../support/commands.ts'

// The attack: an administrator whose session has just ended requests a change of the cluster that
// no log entry records. A change that cannot be recorded must not be made.

test('a membership change is refused if the session of its caller has ended, because the audit log could not record the caller', async () => {
  const controller = await startController()
  try {
    const recorder = new ClusterActionRecorder(controller.cluster, { warn: () => undefined })
    const sessionId = 'ended meanwhile'
    const by = anySession({ identityId: 'admin-id', sessionId, permission: 'admin' })
    let isDone = false
    const wanted = { action: 'member-remove', target: 'ctrl2' }
    const asked = runWithAudit(recorder, wanted, by, () => {
      isDone = true
      return Promise.resolve()
    })
    await expect(asked).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
    expect(isDone).toBe(false)
  } finally {
    await controller.close()
  }
})
