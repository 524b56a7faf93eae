import { isoTime } from '../lib/text/format-time.ts'
import type { Index, Term } from '../raft/types.ts'

type AlarmSeverity =
  /** Something may fail later unless the operator acts. */
  | 'warning'
  /** Do not rely on the responses of this controller; take it out of service. */
  | 'critical'

/** A row of the alarm table. `F` is the type of the facts that raising the alarm requires. */
interface AlarmRow<F> {
  readonly severity: AlarmSeverity
  /** The observation, for logs and `cluster status`. */
  text(facts: F): string
  /** Distinguishes simultaneous alarms of one code, for example by member or file. */
  about?(facts: F): string
  /** Meaning and remedy for operators, in Markdown. */
  readonly meaning: string
  readonly remedy: string
}

/** Makes the compiler check that all functions of a row accept the same facts. */
const row = <F>(of: AlarmRow<F>): AlarmRow<F> => of

interface OfMember {
  readonly member: string
}

/** An option with its JSON value on this controller and its JSON value on another member. */
export interface OptionDifference {
  readonly name: string
  readonly own: string
  readonly theirs: string
}

const aboutMember = ({ member }: OfMember): string => member

const MIB = 1024 * 1024
const ROUTERS_NAMED_MAX = 5
const NAME_CHARACTERS_MAX = 64

/**
 * All alarms by code. A caller raises an alarm with its code and facts. A test generates
 * docs/operate/alarms.md from this table.
 */
export const alarmTable = {
  STATE_DIVERGED: row<OfMember & { readonly index: Index }>({
    severity: 'warning',
    text: ({ member, index }) =>
      `state of ${member} differs from this controller's at index ${index}`,
    about: aboutMember,
    meaning: 'two members hold different states at one index',
    remedy:
      'with three or more voters, the member that differs from the majority repairs itself; with two voters, or without a majority, keep a copy of both data folders and report the alarm',
  }),
  STATE_QUARANTINED: row<{ readonly reason: string }>({
    severity: 'critical',
    text: ({ reason }) => reason,
    meaning:
      'the state differs from that of the majority; this controller refuses requests until it has rebuilt its state',
    remedy:
      'none if the alarm clears ([Quarantine](#quarantine)); otherwise report the alarm, with the logs of that controller',
  }),
  APPLY_STOPPED: row<{ readonly fault: string }>({
    severity: 'critical',
    text: ({ fault }) => fault,
    meaning: 'an entry of the log could not be applied; the controller exits',
    remedy: 'keep the data folder and report the text of the alarm; the other controllers continue',
  }),
  CLOCK_SKEW: row<OfMember & { readonly offsetMs: number }>({
    severity: 'warning',
    text: ({ member, offsetMs }) => {
      const where = offsetMs > 0 ? 'ahead of' : 'behind'
      const seconds = (Math.abs(offsetMs) / 1000).toFixed(1)
      return `the clock of ${member} is ${seconds} s ${where} this one; synchronize both by NTP, and check that neither host is overloaded`
    },
    about: aboutMember,
    meaning:
      'by the clock of this controller, the clock of another member was off by more than 2 s for 5 s. A host that is overloaded can cause this alarm although its clock is right',
    remedy:
      'synchronize the clocks by NTP ([Clocks](clocks.md)). A controller whose clock is ahead answers 401 for sessions and certificates that it considers expired. From feature level 2 on, such a controller deletes no session',
  }),
  LOG_TIME_AHEAD: row<{ readonly aheadMs: number }>({
    severity: 'warning',
    text: ({ aheadMs }) =>
      `log time is ${Math.floor(aheadMs / 1000)} s ahead of the clocks of a majority; check that those are right, then run flotilla cluster reset-log-time`,
    meaning:
      'log time is more than 10 s ahead of the clocks of a majority, because those clocks were ahead earlier. Enrollments and request ids expire early, and pauses after wrong codes or passwords last twice as long',
    remedy:
      'check the clocks, then run `flotilla cluster reset-log-time` on the host of any controller ([Clocks](clocks.md))',
  }),
  OPTIONS_DIFFER: row<OfMember & { readonly differences: readonly OptionDifference[] }>({
    severity: 'warning',
    text: ({ member, differences }) => {
      const each = differences.map(
        ({ name, own, theirs }) => `${name} (${own} here, ${theirs} there)`,
      )
      return `${member} has other values of options that must be equal on every controller: ${each.join(', ')}; correct one configuration and restart its controller`
    },
    about: aboutMember,
    meaning:
      'a member runs with different values for options of scope *cluster*; the alarm names the member, the options and both values',
    remedy:
      'correct the configuration that is wrong, and restart its controller ([Change options](change-options.md#options-of-the-cluster)). The alarm clears when the values are equal; it is expected while you change an option on one controller after another',
  }),
  LOW_SPACE: row<{ readonly freeBytes: number }>({
    severity: 'warning',
    text: ({ freeBytes }) => {
      const mib = Math.floor(freeBytes / MIB)
      return `${mib} MiB left on the disk of the log; free disk space, below log.lowSpaceBytes the controller stops`
    },
    meaning:
      'the disk of the log has less free space than eight times `log.lowSpaceBytes` (default 64 MiB)',
    remedy: 'free disk space: below `log.lowSpaceBytes` the controller stops',
  }),
  SNAPSHOT_LAGGING: row<OfMember>({
    severity: 'warning',
    text: ({ member }) =>
      `the log grows faster than ${member} installs its snapshot, so it needs another one; reduce the write load, or raise log.catchUpBytes or cluster.snapshotBytesPerSecond`,
    about: aboutMember,
    meaning:
      'a member needs one snapshot after another: before it has installed a snapshot, the leader has already removed the log entries that follow this snapshot',
    remedy:
      'reduce the write load, or raise `log.catchUpBytes` or `cluster.snapshotBytesPerSecond` on the leader',
  }),
  NO_QUORUM_SPARE: row<{ readonly nextRisk: string; readonly unreachable: readonly string[] }>({
    severity: 'warning',
    text: (facts) => `${facts.nextRisk}; unreachable from here: ${facts.unreachable.join(', ')}`,
    meaning:
      'the cluster has three or more voters, this controller cannot reach some of them, and one more failure stops writes, or writes have stopped already',
    remedy: 'start or repair the voters that the alarm names',
  }),
  LOG_REPAIRING: row<{ readonly term: Term; readonly index: Index | null }>({
    severity: 'warning',
    text: ({ term, index }) => {
      const missing =
        index === null ? `entries of term ${term}` : `entries up to ${index} of term ${term}`
      return `the log was damaged and may lack ${missing}; it is being re-replicated, and this controller cannot become leader until it is complete`
    },
    meaning: 'the log was damaged and may lack acknowledged entries',
    remedy:
      'none while the other members are up: they send the missing entries; check the disk ([Damaged files](damaged-files.md))',
  }),
  CERTIFICATE_EXPIRES: row<{ readonly sentences: readonly string[]; readonly path?: string }>({
    severity: 'warning',
    text: ({ sentences }) => sentences.join('. '),
    about: ({ path }) => path ?? '',
    meaning: 'a certificate of this controller or cluster expires soon',
    remedy:
      'follow the text of the alarm: it names the certificate and describes how to renew it ([Certificates](certificates.md#alarm-certificate_expires))',
  }),
  ROUTER_CERTIFICATE_EXPIRES: row<{
    readonly routers: readonly { readonly name: string; readonly notAfterMs: number }[]
  }>({
    severity: 'warning',
    text: ({ routers }) => {
      const shown = routers.slice(0, ROUTERS_NAMED_MAX).map(({ name, notAfterMs }) => {
        return `${name.slice(0, NAME_CHARACTERS_MAX)} (until ${isoTime(notAfterMs)})`
      })
      const others = routers.length - shown.length
      const list = [...shown, ...(others > 0 ? [`${others} more`] : [])].join(', ')
      return `routers have not renewed their certificates: ${list}; look for 'certificates' in their logs`
    },
    meaning:
      'routers have not renewed their certificates in time: a certificate is valid for at most 30 more days, or at most 6 more days for an OpenZiti router and for a router that has been offline since this controller started. The alarm clears within ten minutes of the renewal',
    remedy:
      'read the log of the router ([Certificates of a router](run-a-router.md#certificates)), or start the router. Enroll the router again if its certificate has expired; disable or delete a router that is gone',
  }),
  CERTIFICATE_REFUSED: row<{ readonly path: string; readonly sentence: string }>({
    severity: 'warning',
    text: ({ sentence }) => `certificate files rejected: ${sentence}; they are not in use`,
    about: ({ path }) => path,
    meaning:
      'files of `identity` or `serverCertificates` were replaced, and the new files do not belong together or are not for this controller',
    remedy:
      'install files that belong together and to this controller; the controller reads them automatically, or immediately with `flotilla pki reload`',
  }),
  BACKUP_FAILED: row<{ readonly fault: string }>({
    severity: 'warning',
    text: ({ fault }) => `backup failed: ${fault}; will retry, older backups are kept`,
    meaning:
      'the controller could not take a scheduled backup (`backup.folder`); older backups are kept',
    remedy:
      'correct the reason that the alarm gives (folder, space, key or state); the controller retries the backup within five minutes',
  }),
  EVENTS_NOT_WRITTEN: row<{ readonly path: string; readonly fault: string }>({
    severity: 'warning',
    text: ({ path, fault }) =>
      `cannot write events to ${path} (${fault}); will retry, events that leave memory meanwhile are missing in the file`,
    meaning:
      '`events.file.path` cannot be opened or written; events that memory discards in the meantime are missing in the file; nothing else is affected',
    remedy:
      'free disk space, or correct folder and permissions; the controller retries automatically, and marks in the file where events are missing',
  }),
  BACKUP_HOOK_FAILED: row<{
    readonly fault: string
    readonly path: string
    readonly command: string
  }>({
    severity: 'warning',
    text: (facts) =>
      `the hook ${facts.fault} for ${facts.path}; run ${facts.command} by hand; the backup itself is complete`,
    meaning: '`backup.hook` failed or took too long; the backup itself is complete',
    remedy:
      'run the hook with the path that the alarm names, and with the [restrictions of the unit](backup-and-restore.md#schedule-backups): without these restrictions, the hook may succeed although it fails in the unit',
  }),
  NO_SEEDS: row<{ readonly path: string; readonly fault: string }>({
    severity: 'warning',
    text: ({ path, fault }) =>
      `cannot write the addresses of the other controllers to ${path} (${fault}), and cluster.seeds is empty: if the data folder is lost, this controller finds none of them`,
    meaning:
      'the controller cannot write the file with the addresses of the other controllers (`ID.seeds` in the folder of its key), and its configuration has no `cluster.seeds`. After a loss of its data folder, the controller could not find the others to get the state from them',
    remedy:
      'give the user of the controller write permission for the folder of `identity.key`, or set `cluster.seeds` to mesh addresses of other controllers and restart ([Lost disk](lost-disk.md))',
  }),
  NODE_UNSUPPORTED: row<{ readonly sentence: string }>({
    severity: 'warning',
    text: ({ sentence }) => sentence,
    meaning:
      'the controller runs on a version of Node that never frees the certificates of clients: anyone who reaches a port can fill its memory',
    remedy:
      'start the controller with `bin/flotilla`, which refuses such versions of Node, or install a later version of Node',
  }),
} as const

export type AlarmCode = keyof typeof alarmTable
export type AlarmFacts<C extends AlarmCode> = Parameters<(typeof alarmTable)[C]['text']>[0]

/** A condition about which an operator must know. */
export interface Alarm {
  readonly code: AlarmCode
  /** The observation, usually as one sentence. */
  readonly text: string
  /** UTC ms. */
  readonly sinceMs: number
  readonly severity: AlarmSeverity
}

/** Raises alarms for the operator of a controller. */
export interface AlarmRaiser {
  /**
   * Raises an alarm, which stays raised until a caller clears it. Raising it again only updates its
   * text.
   */
  raise<C extends AlarmCode>(code: C, facts: AlarmFacts<C>): void
  /**
   * Clears an alarm.
   * @param about selects one of several alarms of the code; '' for a code with a single alarm.
   */
  clear(code: AlarmCode, about?: string): void
}
