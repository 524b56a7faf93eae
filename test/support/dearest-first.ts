import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The files that use the most processor time for their length. A new clone has no recorded
 * durations, so Vitest would begin with the longest files, and a short but slow file would run at
 * the end, while a core is idle.
 */
const DEAREST = [
  'test/process/rolling-upgrade.test.ts',
  'test/process/membership.test.ts',
  'test/process/people.test.ts',
  'test/process/leadership.test.ts',
  'test/process/writes.test.ts',
  'test/process/external-jwt.test.ts',
  'test/process/restores.test.ts',
  'test/process/readme.test.ts',
  'test/process/elections.test.ts',
  'test/api/generated/bad-input.test.ts',
  'test/sim/simulation.test.ts',
  'test/sim/circuits/circuits.test.ts',
  'test/cli/controller-run.test.ts',
  'test/cli/program.test.ts',
  'test/threads/schema-worker.test.ts',
  'test/zoo/zoo.test.ts',
  'test/raft/simulation.test.ts',
  'test/cli/init.test.ts',
  'test/cli/network/round-trip.test.ts',
  'test/cluster/catch-up.test.ts',
]
/**
 * The last files with real controllers leave a core idle, which files of the other projects then
 * use.
 */
const PROJECTS = ['process', 'mocked', 'unit']

/**
 * Orders the files by project. Within a project the most expensive files come first, then the
 * others in Vitest's order.
 */
export class DearestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const root = this.ctx.config.root
    const place = ({ project, moduleId }: TestSpecification): number => {
      const at = DEAREST.indexOf(relative(root, moduleId))
      return PROJECTS.indexOf(project.name) * DEAREST.length * 2 + (at < 0 ? DEAREST.length : at)
    }
    return (await super.sort(files)).sort((one, other) => place(one) - place(other))
  }
}
