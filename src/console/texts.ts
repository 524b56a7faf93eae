// Texts of the frame, of Home and of parts that several pages share. The module `page-texts.ts` has
// the texts of single pages.

import { count, latencyText, list, UNMEASURED_MS, upperFirst, within } from './text-parts.ts'

/** A number of seconds in the largest unit that leaves no rest, such as `1 hour`. */
function durationText(seconds: number): string {
  const units = [
    [86_400, 'day'],
    [3_600, 'hour'],
    [60, 'minute'],
  ] as const
  const [size, name] = units.find(([unit]) => seconds > 0 && seconds % unit === 0) ?? [1, 'second']
  return count(seconds / size, name, `${name}s`)
}

/** Names in a sentence about a policy. */
const NAMES_SHOWN = 4

/**
 * If a number may be larger than this, its maximum is only that of its type, and the form does not
 * show it.
 */
const UNLIMITED = 1_000_000_000

export const texts = {
  product: 'Flotilla',
  loading: 'Loading',
  actions: 'Actions',
  cancel: 'Cancel',
  copy: 'Copy',
  copied: 'Copied',
  copyId: (id: string) => `Copy the ID ${id}`,
  table: 'Table',

  duration: durationText,

  /** For example `2 services`; a title like `JWT signers` is not changed. */
  count: (amount: number, one: string, many: string) => count(amount, one, within(many)),

  search: {
    title: 'Search',
    open: 'Search',
    keys: 'Ctrl K',
    placeholder: 'Name or ID, #attribute, page or task',
    page: 'page',
    task: 'task',
    attribute: 'role attribute',
  },

  attributes: {
    lead: 'Records that have this role attribute, and policies that select by it',
    none: 'Nothing has this role attribute, and no policy selects by it.',
    summary: (amounts: readonly string[], policies: number) => {
      const held = amounts.length === 0 ? 'On no record' : `On ${list.format(amounts)}`
      return policies === 0
        ? `${held}; no policy selects by it, so it grants nothing.`
        : `${held}; ${count(policies, 'policy selects', 'policies select')} by it.`
    },
    open: 'Open as a list',
  },

  profile: {
    title: 'Your account',
    lead: 'Your identity, your sign-in methods and your password',
    id: 'ID',
    username: 'User name',
    permissions: 'Permissions',
    admin: 'Administrator',
    noPermissions: 'none',
    factor: 'Second factor',
    factorOn: 'On',
    factorOff: 'Off',
    setUp: 'Set up',
    setUpFactor: 'Set up the second factor',
    scan: 'Scan this code with an authenticator app, then enter the code that the app shows.',
    qr: 'QR code for an authenticator app',
    secret: 'Or enter this secret in the app',
    recovery: 'Recovery codes. Keep them: each one replaces a code once.',
    codeHint: 'Six digits from the app.',
    codeFirst: 'Enter a code of the app first',
    factorDone: 'The second factor is on',
    endOthers: 'End all others',
    endOthersWhat: (amount: number) =>
      `${count(amount, 'other session is', 'other sessions are')} logged out.`,
    endedOthers: 'Ended the other sessions',
    othersRemain: 'Others are still open, because new ones keep beginning: change your password',
    noOthers: 'You have no other session',
    password: 'Password',
    noPassword: 'You do not log in with a password.',
    current: 'Current password',
    next: 'New password',
    repeat: 'New password, again',
    wrong: 'The current password is wrong, or too many wrong ones were sent. Try again later.',
    differs: 'The two new passwords differ.',
    change: 'Change the password',
    changed: 'Changed your password',
  },

  uses: {
    changed: (amount: string) => `Used by ${amount}, which will lose it:`,
    deleted: (amount: string) => `Deleted with it: ${amount}`,
    kept: (amount: string) => `Used by ${amount}. It can be deleted once nothing uses it:`,
    inUse: 'It is in use',
    detached: (amount: string) => `Removed from ${amount}`,
  },

  pages: {
    home: 'Home',
    cluster: 'Cluster',
    access: 'Access',
    topology: 'Topology',
    live: 'Sessions',
    activity: 'Activity',
    wizards: 'Set up',
    backups: 'Backups',
    attributes: 'Role attributes',
    missing: 'Not found',
  },

  time: {
    never: 'never',
    now: 'just now',
    underOneSecond: '< 1 s ago',
  },

  ends: {
    none: 'No end',
    never: 'never ends',
    set: 'Set an end',
    presets: { day: '1 day', week: '1 week', month: '30 days' },
    about: (subject: string, text: string) => `${subject}: ${text}`,
    coming: (when: string) => `Ends ${when}`,
    passed: (when: string) => `Ended ${when}`,
    ended: 'Ended',
    attribute: (attribute: string, end: string) => `#${attribute} ${within(end)}`,
    /** Help text for the end of a policy. */
    help: 'It grants nothing after this time, and stays in the list.',
    attributesHelp: 'The identity loses the attribute then.',
  },

  shell: {
    skip: 'Skip to the page',
    navigation: 'Pages',
    openMenu: 'Open the menu',
    closeMenu: 'Close the menu',
    via: (name: string) => `Connected to ${name}`,
    notConnected: 'Not connected',
    toLight: 'Use the light theme',
    toDark: 'Use the dark theme',
    help: 'Keyboard shortcuts',
    logOut: 'Log out',
  },

  banner: {
    silent: 'No controller answers this browser. Trying again …',
    readOnly: (names: readonly string[]) =>
      `Read-only: no leader${names.length === 0 ? '' : ` (${list.format(names)} cannot be reached)`}. Reads continue; changes wait until a majority of voters is back.`,
    refused: 'Read-only: the cluster has no leader',
    unreachable: (names: readonly string[], current: string) =>
      `This browser cannot reach ${list.format(names)} and uses ${current}. ${names.length === 1 ? 'It may be down, or its certificate is' : 'They may be down, or their certificates are'} not trusted here.`,
  },

  failure: {
    title: 'This page could not be loaded',
    missingTitle: 'Not found',
    refusedTitle: 'Not permitted',
    retry: 'Try again',
    missing: 'It was deleted, or the address is wrong.',
    toList: (many: string) => `Go to ${within(many)}`,
    noPage: 'There is no page at this address.',
    toStart: 'Go to Home',
    unreachable:
      'No controller of the cluster answers this browser. Check the network, or that their certificates are trusted here.',
    outcomeUnknown:
      'No answer came, so the outcome is unknown. Look at the current state before you try again.',
    notAllowed: 'Your identity lacks the permission for this. Ask an administrator.',
    noLeader: 'The cluster has no leader, so nothing can be changed. Reads continue.',
    quarantined: 'This controller is in quarantine: its state differs from that of the majority.',
    unexpected: (text: string) => `Unexpected failure: ${text}`,
  },

  faults: {
    duplicate: 'Another record has this value. Choose a different one.',
    required: 'This is required.',
    at: (field: string, text: string) =>
      field === '' || field === '(root)' ? text : `${field}: ${text}`,
  },

  help: {
    title: 'Keyboard shortcuts',
    goTo: 'Go to',
    close: 'Close',
    keys: [
      ['/', 'Focus the filter of a list'],
      ['j', 'Next row'],
      ['k', 'Previous row'],
      ['Enter', 'Open the row'],
      ['e', 'Edit'],
      ['n', 'Create'],
      ['Ctrl K', 'Search everywhere'],
      ['?', 'Show this list'],
    ],
  },

  logIn: {
    title: 'Log in',
    lead: (host: string) => `Controller at ${host}`,
    again: 'Your session has ended',
    againLead: 'Log in to continue. Your input is still here.',
    username: 'User name',
    password: 'Password',
    submit: 'Log in',
    busy: 'Logging in …',
    or: 'or',
    byCertificate: 'Log in with a certificate',
    bySignInPage: 'Log in on the sign-in page of this network',
    byProvider: (name: string) => `Log in with ${name}`,
    providerRefused:
      'The provider logged nobody in, or its account is no identity of this network. Ask an administrator.',
    signInUnknown: 'This tab did not ask for that log-in, or has used it already. Log in again.',
    returning: 'Logging in …',
    refused: 'User name or password is wrong, or the account is locked.',
    certificateRefused:
      'The browser presented no certificate that logs in here. Import the certificate of an identity into the browser.',
    code: 'Code',
    codeHint: 'From your authenticator app, or a recovery code.',
    codeRefused: 'The code is wrong or was used before.',
    prove: 'Continue',
    cancel: 'Use another account',
  },

  home: {
    lead: 'The state of the network, and what needs attention',
    attention: 'Needs attention',
    nothing: 'Nothing needs attention.',
    words: {
      locked: 'Locked',
      soon: 'Expires soon',
      expired: 'Expired',
      unused: 'Unused',
    },
    toCluster: 'Open the cluster',
    /** For example `2 online, 1 offline`; states after the first one only if a record has them. */
    states: (states: readonly { readonly text: string; readonly amount: number }[]) =>
      states
        .filter(({ amount }, at) => at === 0 || amount > 0)
        // No line ends within a part.
        .map(({ text, amount }) =>
          `${amount.toLocaleString('en')} ${within(text)}`.replaceAll(' ', '\u00a0'),
        )
        .join(', '),
    noRights: 'Your identity has no rights here',
    noRightsWhat:
      'It can use the services of the network, but not manage them. Ask an administrator for permissions.',
    matters: {
      offlineRouters: (amount: number) =>
        `${count(amount, 'edge router is', 'edge routers are')} offline`,
      unhosted: (amount: number) => `${count(amount, 'service has', 'services have')} no host`,
      locked: (amount: number) =>
        `${count(amount, 'password is', 'passwords are')} locked after wrong attempts`,
      signers: (amount: number) =>
        `The certificate of ${count(amount, 'JWT signer', 'JWT signers')} expires within 30 days`,
      expiring: (amount: number) =>
        `${count(amount, 'enrollment expires', 'enrollments expire')} within an hour`,
      expired: (amount: number) =>
        `${count(amount, 'enrollment has', 'enrollments have')} expired unused`,
      created: 'created ',
      wentOffline: 'went offline ',
      neverSeen: (amount: number) =>
        `${count(amount, 'identity', 'identities')} older than a week, never seen`,
      unseen: (amount: number) =>
        `${count(amount, 'identity was', 'identities were')} not seen for 90 days`,
    },
  },

  cluster: {
    lead: 'Members, and what the next failure would do',
    addController: 'Add a controller',
    tolerance: (voters: number) => {
      if (voters < 0) return 'No quorum'
      if (voters === 0) return 'The next failure stops writes'
      return `Tolerates the failure of ${count(voters, 'controller', 'controllers')}`
    },
    /** A sentence of the API, without the part that the heading above it says. */
    sentence: (text: string) => `${upperFirst(text.replace(/^no quorum: /, ''))}.`,
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
    behind: 'Entries behind',
    lastContact: 'Last contact',
    version: 'Version',
    entries: (amount: number) => (amount === 0 ? '0' : count(amount, 'entry', 'entries')),
    thisOne: 'this one',
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
    demoteWhat: 'It continues to serve reads and does not count for the quorum.',
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
    download: 'Download the ticket',
    /** An even number of voters tolerates no more failures than one voter less. */
    noGain: (voters: number, tolerated: number) =>
      `${voters} voters tolerate ${count(tolerated, 'failure', 'failures')}, as ${voters - 1} do, and each write then needs ${Math.floor(voters / 2) + 1} of them. Add two controllers, or make this one a learner.`,
    gain: (voters: number, tolerated: number) =>
      `${voters} voters tolerate ${count(tolerated, 'failure', 'failures')}.`,
    outstanding: 'Outstanding tickets',
    outstandingHint: 'Each admits one controller until it expires.',
    kinds: { voter: 'Voter', learner: 'Learner' },
    created: 'Created',
    expires: 'Expires',
    revoke: 'Revoke',
    revokeTitle: 'Revoke a ticket',
    revokeWhat: 'No controller can join with it any more.',
    revoked: 'Revoked the ticket',
    command: 'On the new host, with the ticket in the file ticket',
    commandText: 'flotilla cluster join /etc/flotilla/config.yml --ticket-file ticket',
  },

  news: {
    changes: 'Last changes',
    all: 'All activity',
    events: 'Events',
    none: 'Nothing has happened yet.',
    refused: 'Your identity may not read events.',
    live: 'Live',
    states: { off: 'Off', broken: 'Reconnecting', refused: 'Not permitted' },
  },

  picker: {
    searching: 'Searching …',
    suggestions: 'Suggestions',
    choose: 'Choose',
    search: (many: string) => `Search ${many}`,
    none: 'Nothing matches.',
    failed: 'The suggestions could not be loaded.',
    count: (shown: number, all: number) =>
      shown >= all ? count(all, 'match', 'matches') : `${shown} of ${all.toLocaleString('en')}`,
    remove: (text: string) => `Remove ${text}`,
  },

  roles: {
    own: 'Add an attribute',
    one: 'Attribute',
    search: (many: string) => `#attribute or @name of ${many}`,
    attribute: 'attribute',
    newAttribute: 'new attribute',
    all: (many: string) => `all ${many}`,
    count: (amount: number, one: string, many: string) =>
      `Matches ${count(amount, one, within(many))} now`,
  },

  cell: {
    yes: 'Yes',
    no: 'No',
    online: 'Online',
    offline: 'Offline',
    loggedIn: 'Logged in',
    disabled: 'Disabled',
    enabled: 'Enabled',
    verified: 'Verified',
    unverified: 'Not verified',
    notEnrolled: 'Not enrolled',
    noHost: 'No host',
    totp: 'Authenticator app',
    secondSigner: 'Token of a signer',
    hostsOffline: 'Hosts offline',
    /** For example `Hosted` or `Hosted, 1 of 2 online`; counts terminators. */
    hosted: (online: number, all: number) =>
      online === all ? 'Hosted' : `Hosted, ${online} of ${all} online`,
    semantics: { AllOf: 'All of', AnyOf: 'Any of' } as Readonly<Record<string, string>>,
    rights: { Dial: 'Use (Dial)', Bind: 'Host (Bind)' } as Readonly<Record<string, string>>,
    more: (amount: number) => `+${amount}`,
    notUsed: 'Not used',
    codeEvery: (seconds: number) =>
      seconds < 0 ? 'A code at log-in' : `A code, valid for ${durationText(seconds)}`,
    edgeRouter: 'Edge router',
    transitRouter: 'Transit only',
    system: 'System',
    standard: 'Default',
    builtIn: 'Built in',
    reportedVersion: 'The version as the router reports it to OpenZiti clients',
  },

  /** By the name that a client reports: the name of its operating system. */
  systems: { darwin: 'macOS', linux: 'Linux', windows: 'Windows', android: 'Android', ios: 'iOS' },

  /** By config type of OpenZiti: the purpose of its configs. */
  configTypes: {
    'intercept.v1': 'Addresses that tunnelers intercept',
    'host.v1': 'Where the host reaches the server',
    'host.v2': 'Several servers of a host',
    'proxy.v1': 'Ports at which a tunneler offers the service',
    'interfaces.v1': 'Network interfaces of a router',
    'ziti-tunneler-client.v1': 'One address and port, for old tunnelers',
    'ziti-tunneler-server.v1': 'One server, for old tunnelers',
    'router.link.v1': 'Settings for links of a router',
  },

  list: {
    create: (one: string) => `Create ${one}`,
    filter: (many: string) => `Filter ${within(many)}`,
    filterPlaceholder: (hasAttributes: boolean) =>
      hasAttributes ? 'Name, #attribute or =filter' : 'Name or =filter',
    filterPlain: 'Filter',
    byAttribute: (text: string) => `List those with ${text}`,
    every: (label: string) => `${label}: all`,
    filters: 'Filters',
    active: 'Active filters',
    reset: 'Reset',
    record: 'ID',
    titles: {
      terminators: 'Service and router',
      authenticators: 'Identity',
      enrollments: 'Identity or router',
    },
    methods: {
      ott: 'one-time token',
      ottca: 'certificate of a CA',
      updb: 'password',
      cert: 'certificate',
      erott: 'router token',
      trott: 'router token',
    },
    /** By kind: the consequence of a list without rows, and what to do about it. */
    empty: {
      identities:
        'Nothing can connect to the network until it has an identity. Enroll a device or a person, or import many from a file.',
      services:
        'Clients have nothing to reach until a service exists. It needs a host, and policies that say who may use it.',
      'edge-routers':
        'Clients and hosts connect through edge routers. No service can be reached until one is online.',
      'transit-routers':
        'Transit routers carry circuits between edge routers. A network works without them.',
      'service-policies': 'No identity may use or host a service until a policy allows it.',
      'edge-router-policies':
        'Identities may not use any edge router, so they cannot reach a service. A policy for #all and #all allows all of them.',
      'service-edge-router-policies':
        'Services cannot be reached through any edge router. A policy for #all and #all allows all of them.',
      'posture-checks':
        'Policies do not check devices yet. Create a check, and select it in a service policy.',
      configs:
        'Tunnelers do not know which addresses to intercept, or where hosts reach the server. Offering a service creates both configs.',
      'config-types': 'Each config needs a type, whose schema checks its data.',
      terminators:
        'Nothing hosts a service now. A terminator appears when an identity or a router starts to host one.',
      'auth-policies': 'Identities without their own policy use the default policy.',
      'external-jwt-signers':
        'People log in with a password or a certificate only. Add a provider, and they log in with their account there.',
      cas: 'Identities enroll with certificates of the network only. Add an authority to accept certificates of your own PKI.',
      authenticators: 'No identity can log in until it enrolls or gets a password.',
      enrollments:
        'No token can be used: each identity and router has enrolled, was never invited, or its token has expired.',
      revocations:
        'Each issued token is valid until it expires. Controllers add a revocation when a session of the sign-in page ends. To log an identity out, choose “Log out everywhere” on its page.',
      'controller-settings':
        'All controllers use the settings of their configuration files. A setting adds redirect addresses for programs that log in with OpenID Connect.',
      routers: 'No router has been created.',
    } as Readonly<Record<string, string>>,
    /** By kind: the question before the link to a task that does more than the form. */
    taskInstead: {
      services: 'Need addresses and policies too?',
      'external-jwt-signers': 'Presets for Google, Entra ID, Okta and Keycloak:',
    } as Readonly<Record<string, string>>,
    hostedBy: (host: string) => `Hosted by ${host}`,
    terminatorOf: (service: string, router: string) => `${service} at ${router}`,
    chooseColumns: 'Columns',
    usualColumns: 'Usual columns',
    exports: 'Export',
    exportAs: { csv: 'Export CSV', json: 'Export JSON' },
    select: (name: string) => `Select ${name}`,
    selectAll: 'Select all rows in sight',
    selected: (amount: number) => `${amount.toLocaleString('en')} selected`,
    ofMany: (total: number, most: number) =>
      `of ${total.toLocaleString('en')}; at most ${most} at once`,
    selectEvery: (amount: number) => `Select all ${amount}`,
    unselect: 'Clear',
    addAttributes: 'Add attribute',
    removeAttributes: 'Remove attribute',
    chooseAttribute: 'Choose an attribute first',
    tooMany: (most: number) => `At most ${most} at once`,
    bulkTitles: {
      add: (attributes: string, amount: string) => `Add ${attributes} to ${amount}?`,
      remove: (attributes: string, amount: string) => `Remove ${attributes} from ${amount}?`,
      delete: (amount: string) => `Delete ${amount}?`,
      disable: (amount: string) => `Disable ${amount}?`,
    },
    bulkDisabled: (amount: string) => `Disabled ${amount}`,
    bulkDisableWhat: 'Their sessions end, and they cannot log in until they are enabled again.',
    columns: {
      hasEdgeRouterConnection: 'State',
      hosts: 'State',
      lastSeenAt: 'Last seen',
      onlineSince: 'Since',
      isOnline: 'State',
      sdkInfo: 'Client',
      versionInfo: 'Version',
      expiresAt: 'Ends',
      supportedProtocols: 'For clients',
      encryptionRequired: 'Encrypted',
      createdAt: 'Created',
      typeId: 'Type',
      enabled: 'State',
      isRouterOnline: 'State',
      host: 'Hosted by',
      usedBy: 'Used by',
      configCount: 'Configs',
      linkCount: 'Links',
      circuitCount: 'Circuits',
      configValue: 'Value',
      certificateEnd: 'Expires',
      isVerified: 'State',
      isAuthEnabled: 'Log in',
      isAutoCaEnrollmentEnabled: 'Enroll by certificate',
      isOttCaEnrollmentEnabled: 'Enroll with a token',
      identityCount: 'Identities',
      serviceCount: 'Services',
      routerCount: 'Edge routers',
      policyCount: 'Policies',
      isEdgeRouter: 'Kind',
      maxIdleTimeMillis: 'Idle time',
      hasApiSession: 'Logged in',
      edgeRouterConnectionStatus: 'Connection to routers',
      isMfaEnabled: 'Second factor',
      clientAddress: 'For clients',
      hostAddress: 'At the host',
      requires: 'Requires',
    } as Readonly<Record<string, string>>,
    total: (amount: number, isFiltered: boolean) =>
      isFiltered ? count(amount, 'match', 'matches') : `${amount.toLocaleString('en')} in all`,
    none: (many: string) => `No ${within(many)} yet`,
    noMatch: 'Nothing matches the filter',
    noMatchWhat: 'Upper and lower case make no difference. Remove a filter, or search for less.',
    clear: 'Clear the filter',
    noField: (field: string) => `There is no field “${field}”.`,
    filterFields: (fields: readonly string[]) => `A filter may use ${list.format(fields)}.`,
    filterExample: 'For example: =name contains "wiki"',
    notAll: (rows: number) =>
      `The first ${rows.toLocaleString('en')} are listed. Filter to find the others.`,
    pages: 'Pages of the list',
    range: (offset: number, rows: number, all: number) =>
      `${(offset + 1).toLocaleString('en')}–${Math.min(offset + rows, all).toLocaleString('en')} of ${all.toLocaleString('en')}`,
    previous: 'Previous',
    next: 'Next',
    first: 'This is the first page',
    last: 'This is the last page',
  },

  record: {
    giveAccess: 'Give access',
    accessTo: (service: string) => `Access to ${service}`,
    create: (one: string) => `Create ${one}`,
    created: 'created',
    updated: 'changed',
    lastSeen: 'last seen',
    neverSeen: 'never seen',
    onlineSince: 'online since',
    offlineSince: 'offline since',
    dependents: {
      title: 'Affected while it is offline',
      harmlessTitle: 'Impact: none',
      onlineTitle: 'If this router fails',
      none: 'Every identity and service that uses it has another router online.',
      check: 'Next step: look at its program on its host',
      checkCommand: "systemctl status 'flotilla-router@*'",
      identities: (amount: number) =>
        `${count(amount, 'identity has', 'identities have')} no other router online`,
      services: (amount: number) =>
        `${count(amount, 'service has', 'services have')} no other router online`,
    },
    delete: 'Delete',
    deleteTitle: (name: string) => `Delete ${name}?`,
    deleteWhat: (one: string) =>
      `This ${one} is deleted on every controller. Activity can undo the deletion of most records.`,
    deleted: (name: string) => `Deleted ${name}`,
    typeName: 'Type the name first',
    related: 'Related',
    times: (amount: number) => `×${amount}`,
    showAll: (amount: number, most: number) =>
      amount > most ? `Show the first ${most}` : `Show all ${amount.toLocaleString('en')}`,
    unhosted: 'Nothing hosts this service, so no identity can reach it.',
    allowHosting: 'Say who hosts it',
    hosting: (service: string) => `Hosting of ${service}`,
    everything: 'All fields, as JSON',
    facts: 'Facts',
    factNames: {
      authPolicy: 'Authentication policy',
      externalId: 'External ID',
      envInfo: 'System',
      disabledAt: 'Disabled since',
      supportedProtocols: 'Addresses for clients',
      typeId: 'Type',
      subject: 'Subject',
      policies: 'Policies',
      edgeRouter: 'Edge router',
      'cas.identityRoles': 'Attributes of its identities',
    } as Readonly<Record<string, string>>,
    data: 'Data',
    schema: 'Schema',
    noClients: 'It takes no clients',
    tag: (name: string) => `Tag ${name}`,
    tabs: 'Parts of the page',
    tabNames: {
      overview: 'Overview',
      access: 'Access',
      traffic: 'Traffic',
      sessions: 'Sessions and circuits',
      circuits: 'Circuits',
      activity: 'Activity',
      edit: 'Edit',
    },
  },

  /** Sentences about the access that policies grant. */
  policies: {
    verbs: {
      Dial: { now: 'may use', ended: 'may no longer use' },
      Bind: { now: 'may host', ended: 'may no longer host' },
      'edge-router-policies': { now: 'may connect to', ended: '' },
      'service-edge-router-policies': { now: 'can be reached through', ended: '' },
    } as Readonly<Record<string, { readonly now: string; readonly ended: string }>>,
    everyCheck: 'every posture check',
    nothing: (one: string) => `It selects no ${one}, so it grants nothing.`,
    /** For example `all identities`, `Sales` or `edge routers with all of #eu and #fast`. */
    selection: (names: readonly string[], hasAll: boolean, many: string) => {
      if (names.includes('#all')) return `all ${within(many)}`
      const shown = names.length <= NAMES_SHOWN ? names : names.slice(0, NAMES_SHOWN - 1)
      const rest = names.length - shown.length
      const text = list.format(rest === 0 ? shown : [...shown, `${rest} more`])
      return hasAll ? `${within(many)} with all of ${text}` : text
    },
    sentence: (parts: {
      readonly who: string
      readonly verb: string
      readonly what: string
      readonly checks: readonly string[]
      /** When the policy ends, such as `Ends in 3 hours`; null: never. */
      readonly end: string | null
    }) => {
      const { who, verb, what, checks, end } = parts
      const condition = checks.length === 0 ? '' : `, if the device passes ${list.format(checks)}`
      const when = end === null ? '' : ` It ${within(end)}.`
      return `${upperFirst(who)} ${verb} ${what}${condition}.${when}`
    },
  },

  form: {
    title: (one: string) => upperFirst(one),
    none: '–',
    lines: 'One per line',
    jsonObject: 'A JSON object.',
    tags: 'A JSON object, such as {"owner": "Sam Carter"}.',
    pem: 'In PEM format.',
    methods: {
      ott: 'One-time token',
      ottca: 'Certificate of a CA',
      updb: 'User name and password',
      cert: 'Certificate',
    } as Readonly<Record<string, string>>,
    asForm: 'Form',
    json: 'JSON',
    view: 'How to edit the data',
    noForm: {
      noType: 'Choose a config type, and its form appears here.',
      noMembers: 'The schema of this type names no fields, so its data is JSON.',
    },
    kind: 'Kind',
    option: (k: number) => `Option ${k}`,
    types: {
      string: 'One text',
      array: 'A list',
      object: 'Several fields',
      number: 'A number',
      integer: 'A number',
      boolean: 'Yes or no',
      null: 'Nothing',
    } as Readonly<Record<string, string>>,
    bounds: (minimum: number | null, maximum: number | null) => {
      if (minimum === null) return `At most ${(maximum ?? 0).toLocaleString('en')}.`
      if (maximum === null) return `At least ${minimum.toLocaleString('en')}.`
      if (maximum > UNLIMITED) return `At least ${minimum.toLocaleString('en')}.`
      return `${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}.`
    },
    others: (names: readonly string[]) =>
      `Also in the data, and editable as JSON: ${list.format(names)}`,
    row: (label: string, at: number) => `${label} ${at + 1}`,
    addRow: 'Add',
    addRowTo: (label: string) => `Add: ${label}`,
    removeRow: (label: string, at: number) => `Remove ${label} ${at + 1}`,
    badJson: (reason: string) => `This is not valid JSON: ${reason}`,
    mendJson: 'Correct the JSON first',
    nothing: 'Nothing has changed',
    create: 'Create',
    save: 'Save',
    saved: 'Saved',
    created: (one: string) => `Created the ${one}`,
    advanced: 'Advanced',
    targets: { service: 'Services', router: 'Routers', other: 'Others' },
    semantic: 'Match',
    moreOptions: 'More options',
    disabledRouter: 'The router takes part in nothing until it is enabled again.',
    binding: 'transport: the router dials the address.',
    passwordRules: 'The authentication policy of the identity decides which passwords are allowed.',
    semantics: {
      AllOf: 'All of them (AllOf)',
      AnyOf: 'At least one of them (AnyOf)',
    } as Readonly<Record<string, string>>,
    discard: 'Discard',
    unsaved: (amount: number) => count(amount, 'unsaved change', 'unsaved changes'),
    leave: 'Leave this page? What you typed stays as a draft in this tab.',
    restored: 'Your draft was restored.',
    moved: 'It was changed by somebody else meanwhile. Your draft is kept.',
    reload: 'Load the new state',
    correct: 'Correct the field',
    review: 'Review the changes',
    before: 'Before: ',
    after: 'After: ',
  },

  call: {
    title: 'As API call',
    curl: 'For a script, with the token of a session in TOKEN',
  },

  groups: {
    network: 'Network',
    policies: 'Policies',
    authentication: 'Authentication',
    more: 'More',
  },

  access: {
    lead: 'Who reaches what, and why. Computed by the controllers that enforce it.',
    pick: 'Identity and service',
    identity: 'Identity',
    service: 'Service',
    identities: 'Identities',
    services: 'Services',
    none: 'Choose an identity, a service, or both',
    noneWhat:
      'An identity lists the services that it reaches; a service lists the identities that reach it. With both, you see each policy and router between them, and those that are missing.',
    examples: {
      identity: (name: string) => `What ${name} reaches`,
      service: (name: string) => `Identities that reach ${name}`,
      pair: (identity: string, service: string) => `${identity} to ${service}`,
    },
    nothing: 'There is nothing on the other side yet',
    grantedBy: 'Granted by',
    noneGranted: 'No policy grants anything here',
    noneGrantedWhat: 'Look at all of them to see what each one lacks.',
    noMatch: 'Nothing matches the filter',
    show: 'Which to list',
    shows: { granted: 'Granted', all: 'All' },
    reached: (amount: number, isGranted: boolean) =>
      `${isGranted ? 'Access to ' : ''}${count(amount, 'service', 'services')}`,
    reaching: (amount: number, isGranted: boolean) =>
      isGranted
        ? count(amount, 'identity has access', 'identities have access')
        : count(amount, 'identity', 'identities'),
    export: 'Export CSV',
    exportColumns: [
      'Identity',
      'Identity ID',
      'Service',
      'Service ID',
      'Use the service (Dial)',
      'Host the service (Bind)',
      'Missing first',
    ],
    nearest: 'Nearest policy:',
    lacks: (name: string, attributes: readonly string[]) =>
      `${name} lacks ${list.format(attributes.map((one) => `#${one}`))}`,
    fix: (name: string, attributes: readonly string[]) =>
      `Add ${list.format(attributes.map((one) => `#${one}`))} to ${name}`,
    fixTitle: (action: string) => `${action}?`,
    fixVerb: 'Add',
    /** By the collection of the changed record: how many pairs of identity and service it adds. */
    cost: {
      identities: (amount: number) => `gains ${count(amount, 'service', 'services')}`,
      services: (amount: number) => `${count(amount, 'identity gains', 'identities gain')} it`,
    },
    dial: 'Use (Dial)',
    bind: 'Host (Bind)',
    why: 'What is missing first',
    reachable: 'Works',
    broken: 'Granted, does not work',
    notGranted: 'Not granted',
    direction: 'Direction',
    sides: { dial: 'Use the service (Dial)', bind: 'Host the service (Bind)' },
    yes: {
      dial: (identity: string, service: string) => `${identity} can reach ${service}`,
      bind: (identity: string, service: string) => `${identity} can host ${service}`,
    },
    no: {
      dial: (identity: string, service: string) => `${identity} cannot reach ${service}`,
      bind: (identity: string, service: string) => `${identity} cannot host ${service}`,
    },
    nothingMissing: 'Nothing is missing now.',
    notNeeded:
      'It has not used its enrollment token. It can log in without it, for example with a token of a provider.',
    first: 'First:',
    chain: 'Policies',
    policies: { dial: 'Policies for use (Dial)', bind: 'Policies for hosting (Bind)' },
    policiesOf: (amount: number) =>
      amount === 0 ? 'No policy grants it' : count(amount, 'policy grants it', 'policies grant it'),
    by: 'by',
    check: (name: string, state: string) => `${name}: ${state}`,
    holds: ' – in place',
    doesNotHold: ' – missing',
    noLogIn: 'No way to log in',
    notIntercepted: 'Not intercepted',
    enrolling: 'Enrollment outstanding',
    terminatorAt: (router: string, address: string) =>
      [router, address].filter((part) => part !== '').join(', ') || 'Terminator',
    hostUnknown: 'Hosts',
    hostedByRouter: 'By a router',
    terminators: (online: number, all: number) =>
      all === 0
        ? 'No terminators'
        : `${online} of ${count(all, 'terminator', 'terminators')} online`,
    routers: 'Routers',
    routersOfIdentity: 'Routers of the identity',
    routersOfService: 'Routers of the service',
    common: 'Common routers',
    routersOf: (amount: number) => (amount === 0 ? 'None' : count(amount, 'router', 'routers')),
    commonOf: (online: number, all: number) =>
      all === 0 ? 'None in common' : `${online} of ${all} online`,
    hidden: 'Your identity may not read this part.',
    withheld: (permissions: readonly string[]) =>
      `Not shown without the permission ${list.format(permissions)}.`,
  },

  preview: {
    title: 'Effect on access',
    loading: 'Computing who gains and loses access …',
    failed: (reason: string) => `The effect could not be computed. ${reason}`,
    none: 'Nobody gains or loses access.',
    names: {
      dial: 'Use (Dial)',
      bind: 'Host (Bind)',
      router: 'Identity on router',
      serviceRouter: 'Service on router',
    },
    rights: {
      given: {
        dial: 'may use',
        bind: 'may host',
        router: 'may connect to',
        serviceRouter: 'is reached through',
      },
      taken: {
        dial: 'may no longer use',
        bind: 'may no longer host',
        router: 'may no longer connect to',
        serviceRouter: 'is no longer reached through',
      },
    },
    counts: (right: string, given: number, taken: number) => `${right}: +${given} −${taken}`,
    row: (change: string, who: string, right: string, what: string) =>
      `${change === 'given' ? '+' : '−'} ${who} ${right} ${what}`,
    more: (amount: number) => `and ${amount.toLocaleString('en')} more`,
    posture: (amount: number) =>
      count(amount, 'policy changes its posture checks', 'policies change their posture checks'),
  },

  traffic: {
    title: 'Traffic',
    spans: 'Time span',
    spanNames: { hour: 'Last hour', day: 'Last day' },
    bytes: 'Bytes',
    read: 'Read',
    written: 'Written',
    latency: 'Latency',
    circuits: 'New circuits',
    dialFailures: 'Failed dials',
    latencyOfService: 'Time to create a circuit',
    latencyOfRouter: 'Round trip over its links',
    at: (period: string, text: string) => `${period}: ${text}`,
    readWritten: (read: string, written: string) => `${read} read, ${written} written`,
    soFar: (text: string) => `${text} so far`,
    newCircuits: (amount: number) => count(amount, 'circuit', 'circuits'),
    failures: (amount: number) => count(amount, 'failed dial', 'failed dials'),
    notMeasured: '–',
    asTable: 'As a table',
    columns: ['From', 'Read', 'Written', 'New circuits', 'Failed dials', 'Latency'],
    aboutService: 'Read from clients and written to clients, as routers report each minute.',
    aboutRouter:
      'Read and written by the router at clients, hosts and links, as it reports each minute. A failed dial is a failed attempt to reach one of its terminators.',
    forgets: 'A controller that restarts forgets what it has counted.',
    none: { hour: 'No traffic in the last hour', day: 'No traffic in the last day' },
    topServices: {
      title: 'Services with the most traffic',
      none: 'No service has had traffic.',
      columns: ['Service', 'Bytes', 'New circuits', 'Failed dials', 'Time to create a circuit'],
    },
  },

  live: {
    lead: 'API sessions, service sessions, circuits and links that are open now',
    tables: 'What to show',
    names: {
      'api-sessions': 'API sessions',
      sessions: 'Service sessions',
      circuits: 'Circuits',
      links: 'Links',
    },
    none: {
      'api-sessions': 'Nobody is logged in',
      sessions: 'No service session is open',
      circuits: 'No circuit is open',
      links: 'No link between routers',
    },
    noneWhat: {
      'api-sessions': 'A session appears here when an identity logs in.',
      sessions: 'A session appears here when a client dials a service, or a host offers one.',
      circuits: 'A circuit appears here for each connection through the network.',
      links: 'A link needs two routers that are online, of which one has a link listener.',
    },
    columns: {
      identity: 'Identity',
      identityId: 'Identity',
      ipAddress: 'Address',
      method: 'Logged in with',
      lastActivityAt: 'Last activity',
      createdAt: 'Opened',
      clientId: 'Client',
      service: 'Service',
      type: 'Right',
      path: 'Path',
      edgeRouters: 'Edge routers',
      between: 'Between',
      latency: 'Latency there / back',
    } as Readonly<Record<string, string>>,
    titles: {
      cost: 'Latency plus static cost. Circuits prefer links with a lower cost.',
    } as Readonly<Record<string, string>>,
    silent: (names: readonly string[]) =>
      `${list.format(names)} did not answer, so data that only it has is missing here.`,
    milliseconds: latencyText,
    /** The latency of a link, as measured by each of its two routers. */
    latencies: (...ms: readonly [from: number, to: number]): string => {
      const least = Math.min(...ms)
      if (least >= UNMEASURED_MS) return 'not measured'
      // Both have one precision.
      const digits = least < 10 ? 1 : 0
      const text = (one: number): string =>
        one >= UNMEASURED_MS
          ? '–'
          : one.toLocaleString('en', {
              minimumFractionDigits: digits,
              maximumFractionDigits: digits,
            })
      return `${ms.map(text).join(' / ')} ms`
    },
    linkStates: { up: 'Up', down: 'Down' },
    filter: 'Filter by name or address',
    ownSession: 'this session',
    methods: {
      cert: 'Certificate',
      updb: 'Password',
      ottca: 'Certificate of a CA',
      jwt: 'Token of a provider',
    } as Readonly<Record<string, string>>,
    withFactor: 'and a second factor',
    inAll: 'In all rows:',
    showEach: (amount: number) => `${amount} circuits`,
    showOne: 'Show the newest only',
    routersOnline: (online: number, all: number) => `${online} of ${all} online`,
    end: 'End',
    ended: (one: string, named: string | null) =>
      named === null ? `Ended the ${one}` : `Ended the ${one} of ${named}`,
    one: {
      'api-sessions': 'API session',
      sessions: 'service session',
      circuits: 'circuit',
      links: 'link',
    },
    endOf: (what: string, named: string | null) =>
      named === null ? `End the ${what}?` : `End the ${what} of ${named}?`,
    opened: 'opened',
    rowName: (who: string, service: string, routers: readonly string[]) =>
      [
        who,
        service === '' ? '' : ` to ${service}`,
        routers.length === 0 ? '' : ` over ${list.format(routers)}`,
      ].join(''),
    endWhat: {
      'api-sessions': 'It is logged out on every controller, and its open circuits close.',
      sessions: 'Its circuits are closed. Its client may open a new one.',
      circuits: 'Its connection is closed on both ends.',
      links: 'Its routers connect again.',
    },
    endGroup: 'Their connections are closed on both ends.',
  },

  wizards: {
    lead: 'Each task creates all records that belong together',
    titles: {
      service: 'Offer a service',
      identity: 'Enroll an identity',
      router: 'Add a router',
      signer: 'Add a log-in provider',
      import: 'Import from a file',
    },
    what: {
      service: 'A service, where clients find it, where it is hosted, and who may use it.',
      identity: 'An identity for a device, with its token as QR code and file.',
      router: 'An edge router, with the token by which it enrolls.',
      signer:
        'Google, Entra ID, Okta, Keycloak or another OpenID provider, as an external JWT signer.',
      import: 'Services, identities and policies from a YAML or JSON file.',
    },
    controller: 'A ticket for one new controller, on the cluster page.',
    steps: {
      intercept: 'Config: where clients find it (intercept.v1)',
      host: 'Config: where it is hosted (host.v1)',
      service: 'Service',
      dial: 'Policy: who may use it',
      bind: 'Policy: who hosts it',
    },
    fields: {
      name: { label: 'Name', hint: undefined, example: 'wiki' },
      protocol: { label: 'Protocol' },
      address: {
        label: 'Address for clients',
        hint: 'A name or address that tunnels intercept.',
        example: 'wiki.internal',
      },
      port: { label: 'Port for clients' },
      hostAddress: {
        label: 'Address at the host',
        hint: 'Where the host reaches the server.',
        example: '127.0.0.1',
      },
      hostPort: { label: 'Port at the host' },
      dialRoles: {
        label: 'Who may use it',
        hint: 'Attributes or identities. Empty: nobody yet.',
      },
      bindRoles: {
        label: 'Who hosts it',
        hint: 'The identity next to the server, or a router with a tunneler. Empty: nobody yet.',
      },
    },
    make: 'Create all',
    made: 'Everything is in place.',
    madeOnly: (missing: readonly string[]) => `Created. ${missing.join(' ')}`,
    noUsers: (name: string) => `Nobody can use ${name} yet.`,
    noHosts: (name: string) => `Nothing hosts ${name} yet.`,
    chooseUsers: 'Choose who uses it',
    chooseHosts: 'Choose who hosts it',
    partly: 'Created before it failed:',
    madeService: (name: string) => `Created the service ${name}`,
    undo: (amount: number) => `Undo ${count(amount, 'record', 'records')}`,
    undone: 'Removed the created records',
    undoFirst: 'Remove the created records first',
    openService: 'Open the service',
    identityHint: 'Name of the device or the person, such as "laptop of Ada"',
    routerHint: 'Like router-fra-1',
    attributes: 'Role attributes',
    attributesHint: 'Policies select records by their role attributes.',
    makeIdentity: 'Create the identity',
    makeRouter: 'Create the router',
    tunnel: 'Tunneler enabled',
    tunnelHint: 'The router itself may dial and host services.',
    enrolls: (name: string) => `${name} can enroll`,
    expires: 'expires',
    secret: 'Anyone who has the token can enroll in its place. It is used once.',
    qr: 'QR code of the token, for enrollment on a phone',
    noQr: 'The token is too long for a QR code. Use the file.',
    token: 'Token',
    download: (fileName: string) => `Download ${fileName}`,
    /** By kind: label and command of each step on the host, with the token in a file. */
    commands: {
      identities: (fileName: string) => [
        ['On the device', `flotilla identity enroll '${fileName}' --out identity.json`],
      ],
      'edge-routers': (fileName: string) => [
        [
          '1. On the router’s host, write its configuration. HOST is the name at which clients reach it.',
          'flotilla router init edge router.yml --advertise HOST',
        ],
        ['2. Enroll it with the file', `flotilla router enroll router.yml --jwt '${fileName}'`],
        ['3. Start it', 'flotilla router run router.yml'],
      ],
    },
    waits: {
      identities: (name: string) => `Waiting for ${name} to enroll …`,
      'edge-routers': (name: string) => `Waiting for ${name} to connect …`,
    },
    arrived: {
      identities: (name: string) => `${name} has enrolled.`,
      'edge-routers': (name: string) => `${name} is online.`,
    },
    openIdentity: 'Open the identity',
    openRouter: 'Open the router',
    another: 'Enroll another',
    stepLine: 'Steps',
    enrollSteps: ['Name', 'Token', 'Online'],
    plainIdentity: 'Create one without an enrollment',
  },

  password: { show: 'Show', generate: 'Generate' },

  posture: {
    types: {
      OS: 'Operating system',
      DOMAIN: 'Windows domain',
      MAC: 'Hardware address (MAC)',
      PROCESS: 'One process',
      PROCESS_MULTI: 'Several processes',
      MFA: 'Second factor',
    } as Readonly<Record<string, string>>,
    semantics: { AllOf: 'All of them', AnyOf: 'At least one' } as Readonly<Record<string, string>>,
    operatingSystems: 'A device passes with one of these systems.',
    versions: 'Ranges such as >=10.0.0 <11.0.0. Empty: any version.',
    domains: 'A device passes in one of these domains.',
    macAddresses: 'Like 00:1b:44:11:3a:b7. A device passes with one of them.',
    path: 'The whole path of the program.',
    hashes: 'SHA-512 of the program in hex. Empty: any content.',
    signer: 'SHA-1 fingerprint of the certificate that signed the program. Empty: any.',
    timeout: 'After this time, a new code is required. -1: never.',
    legacy: 'Clients that cannot ask for a new code keep their access.',
  },

  logInRules: {
    primary: 'Methods of log-in',
    secondary: 'Required in addition',
    cert: 'Certificate',
    certAllowed: 'Log in with a certificate',
    expired: 'Also with an expired certificate',
    expiredHelp: 'A device that was off for long can then still come back.',
    updb: 'Password',
    updbAllowed: 'Log in with a user name and password',
    lengthHelp: 'Fewer than 5 means 5.',
    mixedCase: 'Upper and lower case',
    digit: 'A digit',
    special: 'A special character',
    attempts: 'Wrong attempts before a lock',
    attemptsHelp: '0: passwords are never locked.',
    passwords: 'Passwords',
    passwordRules: (least: number, needed: readonly string[]) =>
      list.format([
        `At least ${Math.max(5, least)} characters`,
        ...needed.map((one) => one.toLowerCase()),
      ]),
    lockTitle: 'Lock',
    lock: (attempts: number, minutes: number) => {
      if (attempts === 0) return 'Never'
      const after = `After ${count(attempts, 'wrong attempt', 'wrong attempts')}`
      return minutes === 0
        ? `${after}, until an administrator ends it`
        : `${after}, for ${count(minutes, 'minute', 'minutes')}`
    },
    signersTitle: 'Signers',
    everySigner: 'Every enabled signer',
    lockout: 'Lock, in minutes',
    lockoutHelp: '0: until an administrator ends it.',
    extJwt: 'Identity provider',
    extJwtAllowed: 'Log in with a token of a provider',
    signers: 'Only from these signers',
    signersHelp: 'None chosen: every enabled signer.',
    totp: 'A code of an authenticator app (TOTP)',
    secondSigner: 'A token of this signer',
    secondSignerHelp: 'In each request, beside the session.',
  },

  signers: {
    provider: 'Provider',
    register: (provider: string) =>
      `Create a public (PKCE) client at ${provider} with this redirect address`,
    fields: {
      clientId: { label: 'Client ID', hint: 'The ID that the provider gave this client.' },
      tenant: {
        label: 'Directory (tenant) ID',
        hint: 'A UUID, from the overview of the app registration.',
      },
      domain: { label: 'Okta domain', hint: 'Like example.okta.com' },
      server: {
        label: 'Authorization server',
        hint: 'Like default. Empty: the authorization server of the organization.',
      },
      address: { label: 'Address of Keycloak', hint: 'Like https://keycloak.example.net' },
      realm: { label: 'Realm', hint: 'Like staff' },
      issuer: {
        label: 'Issuer',
        hint: 'Exactly the iss claim of its tokens, such as https://idp.example.net',
      },
    },
    claims: {
      google: 'The account. Use /email only for addresses of a domain that you control.',
      entra: 'The account. The owner of an account can change /email and /preferred_username.',
      okta: 'The account. Of access tokens, /uid is the account and /sub the user name.',
      keycloak: 'The account. Users may be allowed to change /preferred_username.',
      other: 'Choose a claim that the provider never gives to another account.',
    } as Readonly<Record<string, string>>,
    claim: 'Claim that names the identity',
    audienceHint: 'The aud claim of its tokens, usually the client ID.',
    keysHeading: 'Keys: an address or a certificate',
    logInHeading: 'Log in from the console',
    jwksHint: 'Where the provider publishes its keys.',
    certHint: 'Without an address: the certificate that verifies its tokens, as PEM.',
    nameHint: 'People choose the provider by this name when they log in.',
    incomplete: 'Fill in all values. The tenant is a UUID, and an address begins with https.',
    lookUp: 'Look up the provider',
    create: 'Create the signer',
    created: 'Created the signer. Test it with a token.',
    byHand: 'Enter all fields by hand',
    found: 'Found at the provider',
    issuer: 'Issuer',
    keysAt: 'Keys',
    logInAt: 'Log-in',
    noLogIn: 'The provider publishes no address for log-in.',
    keys: (amount: number) =>
      `The controller reaches the provider and can use ${count(amount, 'key', 'keys')} of it.`,
    noKeys: (reason: string) =>
      `The provider answers, but the controller could not fetch its keys: ${reason}`,
    noUsableKeys: 'The provider answers, but publishes no key that a controller can use.',
  },

  serviceConfigs: {
    title: 'Config overrides',
    what: 'This identity gets these configs for a service, in place of the configs that the service has.',
    service: 'Service',
    config: 'Config',
    add: 'Override the config',
    remove: 'Remove',
    removeOf: (config: string, service: string) => `Remove ${config} of ${service}`,
    chooseBoth: 'Choose a service and a config first',
  },

  backups: {
    lead: 'Copies of all records, encrypted for a key of yours',
    scheduled: 'Scheduled here',
    schedule:
      'This controller takes no backups by itself. Set a folder and the key that encrypts them, and copy the files to another host.',
    option: 'In its configuration',
    optionText: 'backup:\n  folder: /var/backups/flotilla\n  recipient: /etc/flotilla/backup.pem',
    list: 'Taken by this controller',
    none: 'No backups yet',
    noneWhat: 'Those that the controller takes by its schedule are listed here.',
    onHost: 'At the host of a controller',
    onHostWhat:
      'A backup holds every secret of the network. Create, verify and restore it on the host of a controller only, never through a browser.',
    take: 'Take one now, and verify it',
    takeCommand:
      'flotilla cluster snapshot save now.backup --config /etc/flotilla/config.yml --recipient backup.pem\nflotilla cluster snapshot verify now.backup --key backup.key',
    restore: 'Compare one with the cluster, and restore it',
    restoreCommand:
      'flotilla cluster snapshot diff now.backup --config /etc/flotilla/config.yml --key backup.key\nflotilla cluster snapshot restore now.backup --config /etc/flotilla/config.yml --key backup.key',
  },

  acts: {
    access: { identity: 'What it reaches', service: 'Who reaches it' },
    enable: 'Enable',
    disable: 'Disable',
    enabled: 'Enabled',
    disabled: 'Disabled. Its sessions are ended.',
    reEnroll: 'Re-enroll',
    reEnrollWhat:
      'It keeps its ID and all that policies give it. Its present certificate is refused, and a new token lets it enroll again.',
    verifyCa: 'Verify',
    verifyCaWhat: (token: string) =>
      `Proves that you hold the key of this CA: issue a certificate with the common name ${token}, and paste it here.`,
    verifyCaText: 'Certificate, PEM',
    invite: 'New enrollment token',
    inviteWhat: 'Creates a token by which a device can enroll as this identity.',
    replaceTokenWhat: 'Creates a new token. The token that is outstanding is refused.',
    refresh: 'Extend its token',
    refreshWhat: 'Issues the outstanding token again, valid for one more day.',
    resetFactor: 'Reset the second factor',
    resetFactorWhat: 'Removes its authenticator app. At the next log-in a new one can be set up.',
    logOutAll: 'Log out everywhere',
    logOutAllWhat: 'Ends all of its API sessions, and all that they have open.',
    setPassword: 'Set a password',
    setPasswordWhat: 'It can log in with this user name and password.',
    more: 'More',
    done: (label: string) => `Done: ${label}`,
    waits: 'It has not enrolled yet.',
    tokenEnds: 'Its token ends',
    tokenExpired: 'Its token expired',
    renewWhat: 'Replaces the expired token by a new one, valid for one day.',
    showToken: 'Show its token',
    hideToken: 'Hide the token',
  },

  history: {
    title: (id: string) => `Last hour of ${id}`,
    names: {
      commitsPerSecond: 'Commits per second',
      appliedLag: 'Entries behind',
      fsyncP99Ms: 'Log fsync, p99 ms',
      requestsPerSecond: 'Requests per second',
      logIns: 'Log-ins',
      leaderChanges: 'Leader changes',
    } as Readonly<Record<string, string>>,
    value: (amount: number) => amount.toLocaleString('en', { maximumFractionDigits: 1 }),
    most: (amount: number, isCounter: boolean) =>
      `max ${amount.toLocaleString('en', { maximumFractionDigits: 1 })}${isCounter ? ' per minute' : ''}`,
  },
} as const
