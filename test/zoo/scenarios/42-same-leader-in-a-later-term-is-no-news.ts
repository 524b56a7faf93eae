import { assert } from '../../../src/lib/assert.ts'
import { ClusterNodeStage, someWrite } from '../cluster-node-stage.ts'

/**
 * A leader loses and regains leadership between two observations: two elections look like one
 * change. Proposals of its first term may have been replaced in between, so it must receive them
 * again.
 */
export async function scenario(): Promise<void> {
  const stage = await ClusterNodeStage.set()
  stage.leads('n2', 2)
  await stage.settle()
  // The test does not wait for this proposal, because nothing is ever applied here.
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
