import { assert } from '../../../src/lib/assert.ts'
import { ClusterNodeStage, someWrite } from '../cluster-node-stage.ts'

/**
 * A leader loses leadership and regains it unobserved: two elections look like one change.
 * Proposals of its first term may have been replaced in between, and must be handed to it again.
 */
export async function scenario(): Promise<void> {
  const stage = await ClusterNodeStage.set()
  stage.leads('n2', 2)
  await stage.settle()
  // Its end is not waited for: nothing is ever applied here.
  void stage.clusterNode.propose(someWrite).catch(() => undefined)
  await stage.settle()
  const handed = () => stage.commands.filter(({ type }) => type === 'propose').length
  assert(handed() === 1, 'the write was handed over')
  stage.leads('n2', 4)
  await stage.settle()
  assert(
    handed() === 2,
    'I18: a write of term 2 waits for a leader of term 4 that knows nothing of it',
  )
}
