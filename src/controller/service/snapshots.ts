import type { Logger } from 'pino'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { systemClock } from '../../lib/clock.ts'
import { SnapshotFiles, type SnapshotFilesDeps } from '../../store/state/snapshot-files.ts'

/**
 * Opens the snapshots of the data folder, whose lock the caller holds, and removes partial ones of
 * a killed process.
 */
export async function openSnapshots(
  config: ControllerConfig,
  log: Logger,
  deps: Pick<SnapshotFilesDeps, 'machine' | 'refusal'>,
): Promise<SnapshotFiles> {
  const freeBytesMin = config.log.lowSpaceBytes
  const snapshots = new SnapshotFiles({
    ...deps,
    dir: config.data,
    clock: systemClock,
    freeBytesMin,
  })
  await snapshots.removePartial().catch((err: unknown) => {
    log.warn({ err }, 'cannot remove the remains of an unfinished snapshot')
  })
  return snapshots
}
