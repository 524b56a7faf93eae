import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'

import { CommandFailure, EXIT_USAGE } from '../../controller/failure.ts'
import type { DiffOptions } from './diff.ts'
import type { ListOptions } from './list.ts'
import type { RestoreOptions } from './restore.ts'
import type { RestoreRunningOptions } from './restore-running.ts'
import type { SaveOptions } from './save.ts'
import type { VerifyOptions } from './verify.ts'

type WithLayout = (command: Command, config?: string) => Command

/**
 * `flotilla cluster snapshot …`.
 * @param withLayout adds CONFIG and the options that a configuration is composed from.
 */
export function addSnapshots(cluster: Command, withLayout: WithLayout): void {
  const snapshot = cluster
    .command('snapshot')
    .description('back the cluster up, check a backup, restore one')
    .addHelpText(
      'after',
      `
docs/backup.md has the drill word for word, and says what somebody could do with a stolen backup.`,
    )
  addSave(snapshot)
  addVerify(snapshot)
  addList(snapshot)
  addDiff(snapshot)
  addRestore(snapshot, withLayout)
}

function addSave(snapshot: Command): void {
  snapshot
    .command('save')
    .description('write a backup of the whole state while the cluster goes on')
    .argument('<file>', 'the backup, mode 0600; a file that is there is left as it is')
    .option('--config <file>', 'configuration of a controller that runs on this host')
    .option('--data <folder>', 'or its data folder')
    .option('--recipient <file>', 'encrypt it for this public key or certificate (PEM; EC or RSA)')
    .option('--without-secrets', 'leave out what a new cluster could not begin without')
    .option('--plaintext', 'write the secrets in the clear: the file is as good as the cluster')
    .option('--stale', 'ask no leader: what this controller has applied, even without a quorum')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
A backup with secrets is encrypted, or refused: --plaintext has to be said. Its private half stays away from controllers:
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out backup.key
  openssl pkey -in backup.key -pubout -out backup.pem

Example:
  flotilla cluster snapshot save monday.backup --config /etc/flotilla/config.yml --recipient backup.pem`,
    )
    .action(async (file: string, options: SaveOptions) => {
      const { saveSnapshot } = await import('./save.ts')
      await saveSnapshot(file, options)
    })
}

function addVerify(snapshot: Command): void {
  snapshot
    .command('verify')
    .description('check a backup from end to end; asks no controller')
    .argument('<file>', 'the backup')
    .option('--key <file>', 'private key of the recipient, mode 0600, or - for standard input')
    .option('--sha256 <hex>', 'the SHA-256 that save printed')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Without the key of an encrypted backup every checksum is checked; with it, every record and reference too.

Example:
  flotilla cluster snapshot verify monday.backup --key backup.key`,
    )
    .action(async (file: string, options: VerifyOptions) => {
      const { verifySnapshot } = await import('./verify.ts')
      await verifySnapshot(file, options)
    })
}

function addList(snapshot: Command): void {
  snapshot
    .command('list')
    .description('what is said at head and end of backups, the newest first; needs no key')
    .argument('<path>', 'a backup, or a folder with backups')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Example:
  flotilla cluster snapshot list /var/backups/flotilla`,
    )
    .action(async (path: string, options: ListOptions) => {
      const { listSnapshots } = await import('./list.ts')
      await listSnapshots(path, options)
    })
}

function addDiff(snapshot: Command): void {
  snapshot
    .command('diff')
    .description('what a restore would change of the cluster as it is now; writes nothing')
    .argument('<file>', 'the backup')
    .option('--config <file>', 'configuration of a controller that runs on this host')
    .option('--data <folder>', 'or its data folder')
    .option('--key <file>', 'private key of the recipient, mode 0600, or - for standard input')
    .option('--stale', 'ask no leader: what this controller has applied, even without a quorum')
    .option('--json', 'print JSON, with the first ids of each kind')
    .addHelpText(
      'after',
      `
Example:
  flotilla cluster snapshot diff monday.backup --config /etc/flotilla/config.yml --key backup.key`,
    )
    .action(async (file: string, options: DiffOptions) => {
      const { diffSnapshot } = await import('./diff.ts')
      await diffSnapshot(file, options)
    })
}

function addRestore(snapshot: Command, withLayout: WithLayout): void {
  withLayout(snapshot.command('restore').argument('<file>', 'the backup'), '[config]')
    .description('put a backup into the running cluster, or begin a new cluster from it')
    .option('--config <file>', 'restore into the running cluster of this controller')
    .option('--key <file>', 'private key of the recipient, mode 0600, or - for standard input')
    .option('--sha256 <hex>', 'the SHA-256 that save printed')
    .option('--confirm <text>', 'running cluster: its id, in place of typing it')
    .option('--if-index <index>', 'running cluster: refuse if records were written after it', index)
    .option('--other-cluster', 'running cluster: the backup may be of another one')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
With --config, or --data without CONFIG, the records of the running cluster are replaced in one step on all controllers,
after a preview that has to be confirmed. Members, keys, revocations and the audit log stay; all sessions end.

With CONFIG, a new cluster begins with this controller. An existing CONFIG is followed; one that is not there is written
from the options. The data folder must be empty. Identity files of the old controller are used again where CONFIG names
them; otherwise they are made. The old cluster must be stopped for good. Others join with tickets.

Examples:
  flotilla cluster snapshot restore monday.backup --config /etc/flotilla/config.yml --key backup.key
  flotilla cluster snapshot restore monday.backup /etc/flotilla/config.yml --key backup.key \\
    --advertise ctrl1.example.net`,
    )
    .action(restore)
}

type AnyRestoreOptions = RestoreOptions & RestoreRunningOptions

async function restore(
  file: string,
  config: string | undefined,
  options: AnyRestoreOptions,
): Promise<void> {
  if (config === undefined) {
    const { restoreIntoCluster } = await import('./restore-running.ts')
    await restoreIntoCluster(file, options)
    return
  }
  if (options.config !== undefined) {
    throw new CommandFailure(
      EXIT_USAGE,
      'name CONFIG for a new cluster or --config for the running one, not both',
    )
  }
  const { restoreSnapshot } = await import('./restore.ts')
  await restoreSnapshot(file, config, options)
}

function index(text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value > 0) return value
  throw new InvalidArgumentError('It is an index, as diff and save print it.')
}
