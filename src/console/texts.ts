// Every text that a person reads in the console.

const count = (amount: number, one: string, many: string): string =>
  `${amount.toLocaleString('en')} ${amount === 1 ? one : many}`

const upperFirst = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

/** `edgeRouterPolicy` as people write it. */
const words = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).trim()

/** Actions of the audit log. */
const actions: Readonly<Record<string, string>> = {
  create: 'Created',
  delete: 'Deleted',
  patch: 'Changed',
  update: 'Changed',
  'session-create': 'Logged in',
  'session-delete': 'Logged out',
}

const list = new Intl.ListFormat('en', { type: 'conjunction' })

export const texts = {
  product: 'Flotilla',
  loading: 'Loading',
  actions: 'Actions',
  cancel: 'Cancel',
  copy: 'Copy',
  copied: 'Copied',
  table: 'Table',

  pages: {
    cluster: 'Cluster',
    missing: 'Not found',
  },

  time: {
    never: 'never',
    now: 'just now',
    underOneSecond: '< 1 s ago',
  },

  shell: {
    skip: 'Skip to the page',
    navigation: 'Pages',
    openMenu: 'Open the menu',
    closeMenu: 'Close the menu',
    via: (name: string) => `via ${name}`,
    toLight: 'Use the light theme',
    toDark: 'Use the dark theme',
    help: 'Keyboard shortcuts',
    logOut: 'Log out',
  },

  banner: {
    readOnly: 'Read-only: no leader. Reads go on; changes wait until a majority of voters is back.',
    refused: 'Read-only: the cluster has no leader',
    unreachable: (names: readonly string[], current: string) =>
      `This browser cannot reach ${list.format(names)} and uses ${current}. It may be down, or its certificate is not trusted here.`,
  },

  failure: {
    title: 'This page could not be loaded',
    missingTitle: 'Not found',
    refusedTitle: 'Not permitted',
    retry: 'Try again',
    missing: 'It was deleted, or the address is wrong.',
    noPage: 'There is no page at this address.',
    toStart: 'Go to the cluster',
    unreachable:
      'No controller of the cluster answers this browser. Check the network, or that their certificates are trusted here.',
    outcomeUnknown:
      'No answer came, so the outcome is unknown. Look at the current state before you try again.',
    notAllowed: 'Your identity lacks the permission for this. Ask an administrator.',
    noLeader: 'The cluster has no leader, so nothing can be changed. Reads go on.',
    quarantined: 'This controller is in quarantine: its state differs from that of the majority.',
    unexpected: (text: string) => `Unexpected failure: ${text}`,
  },

  help: {
    title: 'Keyboard shortcuts',
    close: 'Close',
    keys: [
      ['/', 'Focus the filter of a list'],
      ['j', 'Next row'],
      ['k', 'Previous row'],
      ['Enter', 'Open the row'],
      ['e', 'Edit'],
      ['n', 'Create'],
      ['?', 'Show this list'],
    ],
  },

  logIn: {
    title: 'Log in',
    lead: (host: string) => `Controller at ${host}`,
    again: 'Your session has ended',
    againLead: 'Log in to go on. What you typed is still here.',
    username: 'User name',
    password: 'Password',
    submit: 'Log in',
    busy: 'Logging in …',
    or: 'or',
    byCertificate: 'Log in with a certificate',
    refused: 'User name or password is wrong, or the account is locked.',
    certificateRefused:
      'The browser presented no certificate that logs in here. Import the certificate of an identity into the browser.',
    code: 'Code',
    codeHint: 'From your authenticator app, or a recovery code.',
    codeRefused: 'The code is wrong or was used before.',
    prove: 'Continue',
    cancel: 'Use another account',
  },

  cluster: {
    lead: 'Members, and what the next failure would do',
    addController: 'Add a controller',
    tolerance: (voters: number) => {
      if (voters < 0) return 'No quorum: writes are refused'
      if (voters === 0) return 'The next failure stops writes'
      return `Tolerates the failure of ${count(voters, 'controller', 'controllers')}`
    },
    nextRisk: (text: string) => `${upperFirst(text)}.`,
    leader: 'Leader',
    noLeader: 'none',
    voters: 'Voters online',
    ofVoters: (online: number, all: number) => `${online} of ${all}`,
    term: 'Term',
    commit: 'Commit index',
    featureLevel: 'Feature level',
    levelWaits: (
      level: number,
      next: { readonly level: number; readonly waitsFor: readonly string[] },
    ) => `${level}; ${next.level} waits for ${list.format(next.waitsFor)}`,
    alarms: (amount: number) => count(amount, 'alarm', 'alarms'),
    critical: 'Critical',
    warning: 'Warning',
    members: 'Members',
    mixedVersions: 'Versions differ',
    member: 'Controller',
    role: 'Role',
    state: 'State',
    behind: 'Behind',
    lastContact: 'Last contact',
    version: 'Version',
    entries: (amount: number) => (amount === 0 ? '0' : count(amount, 'entry', 'entries')),
    thisOne: '(this one)',
    manage: 'Manage',
    roles: {
      leader: 'Leader',
      follower: 'Follower',
      candidate: 'Candidate',
      preCandidate: 'Candidate',
      learner: 'Learner',
      unknown: 'Unknown',
    },
    states: { online: 'Online', failing: 'Failing', away: 'Unreachable' },
  },

  manage: {
    title: (id: string) => `Manage ${id}`,
    transfer: 'Make it the leader',
    transferWhat: 'Transfers leadership; writes pause for a moment.',
    leadsAlready: 'It is the leader already.',
    noVoter: 'A learner cannot lead. Promote it first.',
    promoteWhat: 'It votes from then, and counts for the quorum.',
    demoteWhat: 'It goes on to serve reads and does not count for the quorum.',
    removeWhat: 'Revokes its access. To come back it needs a ticket and an empty data folder.',
    verbs: {
      promote: (id: string) => `Promote ${id} to voter`,
      demote: (id: string) => `Demote ${id} to learner`,
      remove: (id: string) => `Remove ${id}`,
    },
    done: {
      promote: (id: string) => `Promoted ${id} to voter`,
      demote: (id: string) => `Demoted ${id} to learner`,
      remove: (id: string) => `Removed ${id}`,
    },
    transferred: (id: string) => `Transferred leadership to ${id}`,
    now: 'Now',
    then: 'After the change',
    toleranceOf: (voters: number) =>
      voters < 0 ? 'No quorum' : `Failure tolerance ${voters.toLocaleString('en')}`,
    votersOf: (ids: readonly string[]) =>
      `${count(ids.length, 'voter', 'voters')}: ${ids.join(', ')}`,
    notNeeded: 'No change needed.',
    typeThis: (text: string) => `Type “${text}” to confirm`,
    typeFirst: 'Type the confirmation first',
  },

  ticket: {
    title: 'Add a controller',
    lead: 'A ticket admits one new controller. Anyone who holds it can join, until it is used or expires.',
    voter: 'It becomes a voter',
    voterHint: 'Otherwise a learner: it serves reads and does not count for the quorum.',
    lifetime: 'Valid for',
    lifetimes: [
      [1, '1 hour'],
      [8, '8 hours'],
      [24, '1 day'],
      [168, '7 days'],
    ],
    make: 'Create the ticket',
    done: 'Done',
    once: 'The ticket is shown once. Move it to the new host by a private channel.',
    ticket: 'Ticket',
    command: 'On the new host, with the ticket in the file ticket',
    commandText: 'flotilla cluster join /etc/flotilla/config.yml --ticket-file ticket',
  },

  news: {
    changes: 'Last changes',
    action: (action: string, entity: string) => {
      const done = actions[action] ?? upperFirst(action)
      return entity === '' ? done : `${done} ${words(entity)}`
    },
    by: (name: string) => `by ${name}`,
    events: 'Events',
    none: 'Nothing happened since this page was opened.',
    refused: 'Your identity may not read events.',
    live: 'Live',
    states: { off: 'Off', broken: 'Reconnecting', refused: 'Not permitted' },
  },
} as const
