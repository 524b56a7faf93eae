import { type Command, InvalidArgumentError } from 'commander'

import { CommandFailure, EXIT_USAGE } from '../../controller/command-failure.ts'
import type { DiffOptions } from './diff.ts'
import type { ListOptions } from './list.ts'
import type { RestoreOptions } from './restore.ts'
import type { RestoreIntoClusterOptions } from './restore-running.ts'
import type { SaveOptions } from './save.ts'
import type { VerifyOptions } from './verify.ts'

type WithLayout = (command: Command, config?: string) => Command

/**
 * Adds `flotilla cluster snapshot …`.
 * @param withLayout adds the CONFIG argument to a command, and the options from which it can
 * compose a configuration.
 */
export function addSnapshotCommands(cluster: Command, withLayout: WithLayout): void {
  const snapshot = cluster
    .command('snapshot')
    .description('create, verify and restore backups')
    .addHelpText(
      'after',
      `
docs/operate/backup-and-restore.md has the procedure step by step, and the risks of a stolen backup.`,
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
    .description('write a backup of the whole state, online')
    .argument('<file>', 'backup file, mode 0600; an existing file is not overwritten')
    .option('--config <file>', 'configuration of a running controller on this host')
    .option('--data <folder>', 'or its data folder')
    .option('--recipient <file>', 'encrypt for this public key or certificate (PEM; EC or RSA)')
    .option('--without-secrets', 'omit secrets; such a backup cannot be restored as a new cluster')
    .option('--plaintext', 'do not encrypt; anyone with the file controls the cluster')
    .option('--stale', 'use the state applied on this controller, even without a quorum')
    .option('--json')
    .addHelpText(
      'after',
      `
A backup with secrets needs --recipient or --plaintext. Keep the private key of the recipient away from controllers:
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out backup.key
  openssl pkey -in backup.key -pubout -out backup.pem

Examples:
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
    .description('verify a backup file, offline')
    .argument('<file>', 'backup file')
    .option('--key <file>', 'private key of the recipient, mode 0600, or - for standard input')
    .option('--sha256 <hex>', 'refuse the file if it has another SHA-256')
    .option('--json')
    .addHelpText(
      'after',
      `
Checks every checksum; with the key of an encrypted backup, every record and reference as well.

Examples:
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
    .description('list backups with their metadata, newest first; needs no key')
    .argument('<path>', 'backup file, or folder of backups')
    .option('--json')
    .addHelpText(
      'after',
      `
Examples:
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
    .description('show the changes a restore would make; writes nothing')
    .argument('<file>', 'backup file')
    .option('--config <file>', 'configuration of a running controller on this host')
    .option('--data <folder>', 'or its data folder')
    .option('--key <file>', 'private key of the recipient, mode 0600, or - for standard input')
    .option('--stale', 'use the state applied on this controller, even without a quorum')
    .option('--json')
    .addHelpText(
      'after',
      `
Examples:
  flotilla cluster snapshot diff monday.backup --config /etc/flotilla/config.yml --key backup.key`,
    )
    .action(async (file: string, options: DiffOptions) => {
      const { diffSnapshot } = await import('./diff.ts')
      await diffSnapshot(file, options)
    })
}

function addRestore(snapshot: Command, withLayout: WithLayout): void {
  withLayout(snapshot.command('restore').argument('<file>', 'backup file'), '[config]')
    .description('restore a backup into the running cluster, or as a new cluster')
    .option('--config <file>', 'restore into the running cluster of this controller')
    .option('--key <file>', 'private key of the recipient, mode 0600, or - for standard input')
    .option('--sha256 <hex>', 'refuse the file if it has another SHA-256')
    .option('--confirm <text>', 'running cluster: confirmation text, which is its id, for scripts')
    .option(
      '--if-index <index>',
      'running cluster: refuse if any record changed after this index',
      index,
    )
    .option('--other-cluster', 'running cluster: accept a backup of another cluster')
    .option('--json')
    .addHelpText(
      'after',
      `
With --config, or --data without CONFIG, the records of the running cluster are replaced in one step on all controllers,
after a preview that has to be confirmed. Members, keys, revocations and the audit log stay; all sessions end.

With CONFIG, a new cluster is created on this host. An existing CONFIG is used as it is; a missing one is written from
the options. The data folder must be empty. Identity files of the old controller that CONFIG names are reused; missing
ones are created. The old cluster must be stopped permanently. Other controllers join with tickets: flotilla cluster
invite, flotilla cluster join.

Examples:
  flotilla cluster snapshot restore monday.backup --config /etc/flotilla/config.yml --key backup.key
  flotilla cluster snapshot restore monday.backup /etc/flotilla/config.yml --key backup.key \\
    --advertise ctrl1.example.net`,
    )
    .action(restore)
}

type AnyRestoreOptions = RestoreOptions & RestoreIntoClusterOptions

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
  throw new InvalidArgumentError('Expected an index, as printed by diff and save.')
}
