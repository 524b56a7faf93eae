// Texts of single pages. They are not part of the first load.

import { count, latencyText, list } from './text-parts.ts'

/**
 * Verbs for the actions in the audit log: after the name of the actor, and after `tried to` if the
 * action was refused.
 */
const verbs: Readonly<Record<string, readonly [done: string, tried: string]>> = {
  create: ['created', 'create'],
  patch: ['changed', 'change'],
  replace: ['changed', 'change'],
  delete: ['deleted', 'delete'],
  enroll: ['enrolled', 'enroll'],
  'identity-disable': ['disabled', 'disable'],
  'identity-enable': ['enabled', 'enable'],
  'session-create': ['logged in', 'log in'],
  'session-delete': ['logged out', 'log out'],
  'leadership-transfer': ['transferred leadership to', 'transfer leadership to'],
  'member-promote': ['promoted', 'promote'],
  'member-demote': ['demoted', 'demote'],
  'member-remove': ['removed', 'remove'],
  'member-add': ['added', 'add'],
  'ticket-create': ['created a ticket:', 'create a ticket:'],
  'hosted-terminator-create': ['confirmed a terminator', 'add a terminator'],
  'hosted-terminator-update': ['confirmed a terminator', 'change a terminator'],
  'hosted-terminators-remove': ['reported a removed terminator', 'remove a terminator'],
}

/** Reasons of refusals in the audit log, by error code. */
const refusals: Readonly<Record<string, string>> = {
  COULD_NOT_VALIDATE: 'a value is invalid or taken',
  NOT_FOUND: 'it was deleted before',
  CAN_NOT_DELETE_REFERENCED_ENTITY: 'it is in use',
  ENTITY_CAN_NOT_BE_DELETED: 'it cannot be deleted',
  ENTITY_CAN_NOT_BE_UPDATED: 'it cannot be changed',
}

export const pageTexts = {
  /** Help for members of the data of a config. */
  configHints: {
    addresses: 'Names, IP addresses or networks that clients call, such as wiki.internal.',
    sourceIp: 'Usually empty. Address from which the host calls the server.',
    sources: 'Usually empty. Only clients with these local addresses are intercepted.',
    dialOptions: 'Usually empty. For example, the identity that must host the service.',
  },

  listFile: {
    progress: (rows: number, all: number) => `Exporting ${rows} of ${all}`,
    limit: (rows: number, all: string) =>
      `The file contains the first ${rows.toLocaleString('en')} of ${all}. Filter the list, or use the API.`,
  },

  startHere: { title: 'Start here', done: 'Done' },

  specialInputs: {
    allControllers: 'All controllers',
    enrollments: {
      ott: 'One-time token',
      ottca: 'Token and a certificate of a CA',
      updb: 'Password, chosen at the enrollment',
      none: 'None',
    },
    enrollmentOf: { ottca: 'Certificate authority', updb: 'User name' },
  },

  bulk: {
    done: (amount: number) => count(amount, 'record changed', 'records changed'),
    progress: (made: number, all: number) => `${made} of ${all}`,
    refused: (amount: number, all: number) =>
      `${count(amount, 'change was', 'changes were')} refused, of ${all}:`,
    phrase: (amount: string) => `delete ${amount}`,
    deleteWhat:
      'They are deleted on every controller. Activity can undo the deletion of most records.',
    notDeleted: (name: string) => `${name} cannot be deleted. Remove it from the selection.`,
    notChanged: (name: string, reason: string) => `${name} cannot be changed: ${reason}`,
  },

  import: {
    lead: 'Creates and changes what the file names; deletes nothing.',
    drop: 'Drop a file here, or choose one',
    chosen: (name: string, changes: number | null) =>
      changes === null ? name : `${name} · ${count(changes, 'change', 'changes')}`,
    how: [
      'Choose a file. Nothing is changed yet.',
      'Check the changes, and who gains or loses access.',
      'Make the changes.',
    ],
    file: 'File',
    fileHint: 'YAML or JSON, as “flotilla export” writes it, at most 4 MB.',
    tooLarge: 'The file is larger than 4 MB. Use flotilla apply.',
    comparing: 'Comparing the file with the network …',
    faults: (amount: number) =>
      `${count(amount, 'fault', 'faults')} in the file; nothing was changed:`,
    fault: (line: number, problem: string) => `Line ${line}: ${problem}`,
    noChange: 'The network matches the file already.',
    changes: (amount: number) => count(amount, 'change', 'changes'),
    button: (amount: number) => `Make ${count(amount, 'change', 'changes')}`,
    tooMany: 'The effect on access is computed for 64 changes at most. Split the file to see it.',
    progress: (done: number, all: number) => `${done} of ${all}`,
    stopped: (done: number, all: number, reason: string) =>
      `${done} of ${all} changes are made, then: ${reason}. Choose the file again to continue.`,
    done: (amount: number) => `Made ${count(amount, 'change', 'changes')}`,
  },

  tokenTest: {
    title: 'Test a token',
    lead: 'The controller verifies the token as for a log-in, but opens no session. It neither keeps nor logs the token.',
    token: 'Token',
    tokenHint: 'The ID token or access token of an account at the provider: three parts with dots.',
    pasteFirst: 'Paste a token first',
    run: 'Test',
    logsIn: 'The token logs in as',
    refused: (reason: string) => `The token is refused: ${reason}.`,
    enrolls: 'It can enroll a new identity.',
    columns: ['Check', 'Result', 'Token', 'Signer'],
    states: { passed: 'Passed', failed: 'Failed', unchecked: 'Not reached' } as Readonly<
      Record<string, string>
    >,
    checks: {
      form: 'Readable',
      issuer: 'Issuer',
      signerEnabled: 'Signer enabled',
      key: 'Key',
      algorithm: 'Algorithm',
      signature: 'Signature',
      audience: 'Audience',
      time: 'Time',
      claim: 'Claim that names the identity',
      identity: 'Identity',
      policy: 'Authentication policy',
    } as Readonly<Record<string, string>>,
    claims: (names: readonly string[]) => `Claims in the token: ${list.format(names)}.`,
  },

  activity: {
    lead: 'Who changed what, and what happens now',
    tabs: { history: 'History', live: 'Live events' },
    list: 'Changes',
    details: (action: string, kind: string, name: string) => `Details: ${action} ${kind} ${name}`,
    runDetails: 'Details of these changes',
    amounts: (amounts: readonly string[]) => list.format(amounts),
    record: 'Record (name or ID)',
    actor: 'Changed by (name or ID)',
    kind: 'Kind',
    everyKind: 'All kinds',
    actionLabel: 'Action',
    actions: [
      { value: '', text: 'All actions' },
      { value: 'create', text: 'Created' },
      { value: 'update', text: 'Changed' },
      { value: 'delete', text: 'Deleted' },
    ],
    range: 'Time',
    ranges: [
      { value: '', text: 'All times' },
      { value: '1', text: 'Last hour' },
      { value: '24', text: 'Last day' },
      { value: '168', text: 'Last 7 days' },
    ],
    all: 'Log-ins and changes by routers',
    none: 'No changes',
    noneWhat: 'No change of the last 30 days matches. The audit log keeps 100,000 entries.',
    count: (shown: number, all: number) =>
      `${shown.toLocaleString('en')} of ${count(all, 'entry', 'entries')}`,
    more: 'Show more',
    action: (action: string, isRefused: boolean) => {
      const [past = null, infinitive = null] = verbs[action] ?? []
      const words = action.replaceAll('-', ' ')
      return isRefused ? `tried to ${infinitive ?? words}` : (past ?? words)
    },
    refused: (code: string) =>
      refusals[code] === undefined ? 'Refused' : `Refused: ${refusals[code]}`,
    code: 'Code',
    enrolled: (method: string) => (method === '' ? 'enrolled' : `enrolled with a ${method}`),
    device: 'A device',
    enrolledAmounts: (amounts: readonly string[]) => `${list.format(amounts)} enrolled`,
    verbs: { create: 'Creates', update: 'Changes', delete: 'Deletes' },
    somebody: 'Somebody',
    partial: 'Secrets changed too; their values are never kept.',
    empty: 'empty',
    omitted: (amount: number) =>
      `${count(amount, 'more record', 'more records')} changed, which you may not read or which were not kept.`,
    states: {
      TOO_LARGE: 'The change was too large to keep.',
      DROPPED: 'The controller dropped the change to make room for newer ones.',
      NONE: 'The values of this change were not kept.',
    },
    entry: 'Entry',
    at: 'At',
    address: 'From',
    reason: 'Reason',
    also: 'Also',
    undo: {
      open: 'Undo …',
      title: 'Undo this change?',
      lead: 'The old values are written again, with your rights. Nothing is written before you confirm.',
      button: 'Undo',
      done: 'The change is undone',
      notPossible: 'This change cannot be undone now',
    },
  },

  events: {
    filter: 'Filter events',
    kind: 'Kind',
    every: 'All kinds',
    usage: 'Show traffic, circuits, session records and connections to controllers',
    kinds: {
      accessEnd: 'Access',
      alert: 'Alarm',
      apiSession: 'API session',
      connect: 'Connection',
      entityChange: 'Record',
      metrics: 'Measurements',
      sdk: 'Client',
      session: 'Service session',
      usage: 'Traffic',
    } as Readonly<Record<string, string>>,
    connectedTo: { ctrl: 'To a controller', router: 'To a router' } as Readonly<
      Record<string, string>
    >,
    times: (amount: number) => `${amount}×`,
    runDetails: (amount: number) => `Details of ${amount} events`,
    terminators: (amount: number) => count(amount, 'terminator', 'terminators'),
    lostLinks: (amount: number) => count(amount, 'link', 'links'),
    names: (names: readonly string[]) => list.format(names),
    more: (amount: number) => `${amount} more`,
    by: (name: string) => `by ${name}`,
    list: 'Events',
    details: (title: string) => `Details: ${title}`,
    severities: { error: 'Critical', warning: 'Warning', info: 'Cleared' } as Readonly<
      Record<string, string>
    >,
    routerSeverities: {
      error: 'Router error',
      warning: 'Router warning',
      info: 'Router notice',
    } as Readonly<Record<string, string>>,
    types: {
      'peer.connected': 'Controller connected',
      'peer.disconnected': 'Controller disconnected',
      'members.changed': 'Members changed',
      'leadership.gained': 'Became the leader',
      'leadership.lost': 'No longer the leader',
      'state.has_leader': 'Has a leader again',
      'state.is_leaderless': 'No leader',
      'state.ro': 'Writes fail',
      'state.rw': 'Writes succeed again',
      'sdk-online': 'Online',
      'sdk-offline': 'Offline',
      'router-online': 'Router online',
      'router-offline': 'Router offline',
      routerLinkNew: 'New link',
      routerLinkKnown: 'Link reported again',
      routerLinkDisconnectedDest: 'New link, one end away',
      fault: 'Link lost',
      pathUpdated: 'Rerouted',
      success: 'Logged in',
      fail: 'Log-in refused',
      approaching: 'Ends soon',
      updated: 'Changed',
    } as Readonly<Record<string, string>>,
    pause: 'Pause',
    resume: 'Resume',
    none: 'No events yet',
    noneWhat: 'Events appear here as they happen, as long as this tab is open.',
    gap: 'Some events may be missing: the connection was away for longer than events are kept.',
    fields: 'All fields of the event',
  },

  topology: {
    lead: 'Routers and the links between them',
    none: 'No routers yet',
    noneWhat: 'Create an edge router and enroll it.',
    tooMany: (amount: number) =>
      `${amount.toLocaleString('en')} routers are too many to draw. Choose one to see its neighbours.`,
    chooseRouter: 'Choose a router',
    drawing: (nodes: number, links: number) =>
      `Drawing of ${count(nodes, 'router', 'routers')} and ${count(links, 'link', 'links')}; the tables below have the same`,
    notDrawn: 'The drawing failed; the tables below have the same.',
    offline: (name: string) => `${name} (offline)`,
    linkLabel: (latencyMs: number, circuits: number) => {
      const latency = latencyText(latencyMs)
      return circuits === 0 ? latency : `${latency} · ${count(circuits, 'circuit', 'circuits')}`
    },
    routerLabel: (name: string, isOnline: boolean) => `${name}, ${isOnline ? 'online' : 'offline'}`,
    legend: 'Wide link: many circuits',
    zoomIn: 'Zoom in',
    zoomOut: 'Zoom out',
    showAll: 'Show the whole network',
    details: 'Details',
    pointAt: 'Choose a router or link, or point at one, to see its links, circuits and services.',
    offlineOf: (offline: number, all: number) =>
      offline === 0
        ? `${count(all, 'router', 'routers')}, none offline`
        : `${offline} of ${count(all, 'router', 'routers')} offline`,
    slowest: 'Slowest link',
    pathOf: (service: string, client: string) =>
      client === '' ? `Path to ${service}` : `${client} to ${service}`,
    hops: (amount: number) =>
      amount === 1 ? 'Client and host are at the same router' : `Over ${amount} routers`,
    unknownRouter: 'a deleted router',
    allCircuits: (amount: number) => `All ${amount.toLocaleString('en')} circuits`,
    onlineSince: 'Online since',
    offlineSince: 'Offline since',
    linksOf: (amount: number) => count(amount, 'link', 'links'),
    hosted: (amount: number) => `${count(amount, 'service', 'services')} hosted here`,
    byRouter: 'by the router',
    circuits: (amount: number) => count(amount, 'circuit', 'circuits'),
    noCircuits: 'No circuit is open. Choose one, when there are some, to see its path.',
    showPath: 'Show path',
    routers: 'Routers',
    router: 'Router',
    state: 'State',
    linkCount: 'Links',
    links: 'Links',
    noLinks: 'No links: routers need an address that others reach, and a router to link to.',
    between: 'Between',
    latency: 'Latency',
    cost: 'Cost',
  },
} as const
