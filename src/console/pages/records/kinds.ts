import { DAY_MS, expiryAfter } from '../../controls/expiry.ts'
import type { IconName } from '../../controls/icon-paths.ts'
import { texts } from '../../texts.ts'
import {
  attributesHint,
  bindingWidget,
  type FieldHint,
  jsonWidget,
  postureFieldHints,
  primaryLogInFieldHints,
  referenceWidget,
  referencesWidget,
  rolesHint,
  tagsHint,
  secondaryLogInFieldHints,
  policySemanticHint,
} from './field-hints.ts'

export type WizardName = Exclude<keyof typeof texts.wizards.titles, 'controller'>

/** Texts and order for a kind of records; everything else is derived from the served schemas. */
export interface ConsoleKind {
  /** Name of the collection in the management API and in the console's addresses. */
  readonly path: string
  readonly one: string
  readonly many: string
  readonly icon: IconName
  /** Columns after the name column, in display order. */
  readonly columns: readonly string[]
  /**
   * Columns that a narrow window shows after the name column. [] for the first one, or for none if
   * the list has a summary below the name.
   */
  readonly narrow: readonly string[]
  /** Form fields in display order. */
  readonly fields: Readonly<Record<string, FieldHint>>
  /** Fields that the form leaves out. */
  readonly hidden: readonly string[]
  /** Fields that few records need; the form shows them in a group that the user opens. */
  readonly advanced: readonly string[]
  /** One sentence about the records of this kind. */
  readonly what: string
  /** The consequence of a list without rows, and what to do about it. */
  readonly empty: string
  /** Wizards that a list without rows offers. */
  readonly tasks: readonly WizardName[]
  /**
   * The wizard that the button for a new record opens, for kinds whose plain form would create a
   * record of no use yet; null: the button opens the form.
   */
  readonly wizard: WizardName | null
  /** Heading of the first column of the list, for records without a name. */
  readonly titleLabel: string
  /** Field by which the list is sorted at first, with `-` for descending order; '': by name. */
  readonly sort: string
  /** Prefix of the permissions for this kind: `<permission>.<action>`. */
  readonly permission: string
}

function kind(
  path: string,
  words: readonly [one: string, many: string, what: string],
  icon: IconName,
  permission: string,
  rest: Partial<
    Pick<
      ConsoleKind,
      | 'columns'
      | 'narrow'
      | 'fields'
      | 'hidden'
      | 'wizard'
      | 'tasks'
      | 'titleLabel'
      | 'sort'
      | 'advanced'
    >
  > = {},
): ConsoleKind {
  const [one, many, what] = words
  const { columns = [], fields = {}, hidden = [], advanced = [] } = rest
  const { narrow = [] } = rest
  const { wizard = null, tasks = [], titleLabel = texts.list.record, sort = '' } = rest
  return {
    path,
    one,
    many,
    what,
    empty: texts.list.empty[path] ?? what,
    icon,
    permission,
    columns,
    narrow,
    fields,
    hidden,
    advanced: [...advanced, 'tags'],
    wizard,
    tasks,
    titleLabel,
    sort,
  }
}

/** Fields of edge routers and transit routers that few routers need. */
const routerFields: ConsoleKind['fields'] = {
  cost: {},
  noTraversal: { label: 'No traversal', help: 'Circuits begin or end here, and do not pass.' },
  disabled: { help: texts.form.disabledRouter },
  allowedNames: { help: 'Names that its certificate may have beside its own.' },
  ctrlChanListeners: { widget: jsonWidget },
  configs: { widget: referencesWidget('configs') },
}

export const kinds: readonly ConsoleKind[] = [
  kind(
    'identities',
    ['identity', 'Identities', 'People, devices and programs that use the network.'],
    'identity',
    'identity',
    {
      wizard: 'identity',
      tasks: ['identity', 'import'],
      advanced: [
        'externalId',
        'appData',
        'serviceHostingCosts',
        'serviceHostingPrecedences',
        'defaultHostingCost',
        'defaultHostingPrecedence',
      ],
      columns: ['hasEdgeRouterConnection', 'lastSeenAt', 'typeId', 'roleAttributes', 'sdkInfo'],
      fields: {
        name: {},
        type: { help: 'For your own order: devices, users and services have the same rights.' },
        roleAttributes: attributesHint('identities'),
        roleAttributesExpireAt: {
          label: 'Ends of role attributes',
          help: texts.ends.attributesHelp,
          widget: { is: 'roleEnds' },
        },
        isAdmin: { label: 'Administrator', help: 'May do everything on the management API.' },
        enrollment: { initial: { ott: true }, widget: { is: 'enrollment' } },
        authPolicyId: { label: 'Authentication policy', widget: referenceWidget('auth-policies') },
        permissions: {
          help: 'What it may do without being an administrator.',
          widget: { is: 'permissions' },
        },
        externalId: { label: 'External ID', help: 'Its name in tokens of an external JWT signer.' },
        appData: { widget: jsonWidget },
        serviceHostingCosts: { widget: { is: 'byService', options: [] } },
        serviceHostingPrecedences: {
          widget: { is: 'byService', options: ['default', 'required', 'failed'] },
        },
        defaultHostingCost: {},
        defaultHostingPrecedence: {},
        tags: tagsHint,
      },
    },
  ),
  kind(
    'services',
    ['service', 'Services', 'What identities reach through the network.'],
    'service',
    'service',
    {
      tasks: ['service', 'import'],
      advanced: ['terminatorStrategy', 'maxIdleTimeMillis'],
      columns: ['hosts', 'clientAddress', 'hostAddress', 'roleAttributes'],
      fields: {
        name: {},
        roleAttributes: attributesHint('services'),
        configs: { help: 'At most one of each config type.', widget: referencesWidget('configs') },
        encryptionRequired: { label: 'End-to-end encryption required', initial: true },
        terminatorStrategy: {},
        maxIdleTimeMillis: { label: 'Idle time (ms)', help: '0: unlimited.' },
        tags: tagsHint,
      },
    },
  ),
  kind(
    'edge-routers',
    ['edge router', 'Edge routers', 'Routers that clients connect to.'],
    'router',
    'router',
    {
      tasks: ['router'],
      advanced: [...Object.keys(routerFields), 'appData'],
      columns: [
        'isOnline',
        'onlineSince',
        'roleAttributes',
        'linkCount',
        'circuitCount',
        'versionInfo',
        'supportedProtocols',
      ],
      fields: {
        name: {},
        roleAttributes: attributesHint('edge-routers'),
        isTunnelerEnabled: { label: 'Tunneler enabled', help: texts.wizards.tunnelHint },
        ...routerFields,
        appData: { widget: jsonWidget },
        tags: tagsHint,
      },
    },
  ),
  kind(
    'transit-routers',
    [
      'transit router',
      'Transit routers',
      'Routers of the fabric. One that is created here takes no clients.',
    ],
    'transit',
    'router',
    {
      columns: ['isOnline', 'onlineSince', 'isEdgeRouter', 'cost'],
      advanced: Object.keys(routerFields),
      fields: { name: {}, ...routerFields, tags: tagsHint },
    },
  ),
  kind(
    'service-policies',
    ['service policy', 'Service policies', 'Which identities may use or host which services.'],
    'policy',
    'service-policy',
    {
      columns: [
        'type',
        'serviceRoles',
        'identityRoles',
        'semantic',
        'postureCheckRoles',
        'expiresAt',
      ],
      fields: {
        name: {},
        type: { label: 'Right', optionTexts: texts.cell.rights },
        identityRoles: rolesHint('identities'),
        serviceRoles: rolesHint('services'),
        postureCheckRoles: rolesHint('posture-checks'),
        semantic: policySemanticHint,
        expiresAt: { label: 'Ends', help: texts.ends.help, widget: { is: 'end' } },
        tags: tagsHint,
      },
    },
  ),
  kind(
    'edge-router-policies',
    ['edge router policy', 'Edge router policies', 'Which identities may use which edge routers.'],
    'policyRouter',
    'edge-router-policy',
    {
      columns: ['identityRoles', 'identityCount', 'edgeRouterRoles', 'routerCount', 'semantic'],
      fields: {
        name: {},
        identityRoles: rolesHint('identities'),
        edgeRouterRoles: rolesHint('edge-routers'),
        semantic: policySemanticHint,
        tags: tagsHint,
      },
    },
  ),
  kind(
    'service-edge-router-policies',
    [
      'service edge router policy',
      'Service edge router policies',
      'Which services may be reached through which edge routers.',
    ],
    'policyService',
    'service-edge-router-policy',
    {
      columns: ['serviceRoles', 'serviceCount', 'edgeRouterRoles', 'routerCount', 'semantic'],
      fields: {
        name: {},
        serviceRoles: rolesHint('services'),
        edgeRouterRoles: rolesHint('edge-routers'),
        semantic: policySemanticHint,
        tags: tagsHint,
      },
    },
  ),
  kind(
    'posture-checks',
    ['posture check', 'Posture checks', 'Conditions that a device must meet to use a service.'],
    'posture',
    'posture-check',
    {
      columns: ['requires', 'typeId', 'roleAttributes', 'policyCount'],
      fields: {
        name: {},
        typeId: { label: 'Type', isFixed: true, optionTexts: texts.posture.types },
        ...postureFieldHints,
        roleAttributes: attributesHint('posture-checks'),
        tags: tagsHint,
      },
    },
  ),
  kind(
    'configs',
    ['config', 'Configs', 'Settings that services pass to their clients and hosts.'],
    'config',
    'config',
    {
      tasks: ['service', 'import'],
      columns: ['configType', 'configValue', 'usedBy'],
      fields: {
        name: {},
        configTypeId: {
          label: 'Config type',
          isFixed: true,
          widget: { is: 'reference', kind: 'config-types', isSelect: true },
        },
        data: { widget: { is: 'configData' } },
        tags: tagsHint,
      },
    },
  ),
  kind(
    'config-types',
    ['config type', 'Config types', 'Schemas of configs.'],
    'braces',
    'config-type',
    {
      columns: ['use', 'configCount'],
      fields: {
        name: {},
        schema: { help: 'JSON Schema of the data.', widget: jsonWidget },
        target: { label: 'Configs of', initial: 'service', optionTexts: texts.form.targets },
        tags: tagsHint,
      },
    },
  ),
  kind(
    'terminators',
    ['terminator', 'Terminators', 'Where circuits of a service end.'],
    'circuit',
    'terminator',
    {
      titleLabel: texts.list.titles.terminators,
      advanced: ['identity', 'identitySecret', 'cost', 'precedence'],
      // Terminators of one service at one router differ by their host.
      columns: ['host', 'isRouterOnline'],
      narrow: ['isRouterOnline'],
      // The controller sorts by IDs; a list that is loaded completely is then sorted by names.
      sort: 'service',
      fields: {
        service: { widget: referenceWidget('services') },
        router: { widget: referenceWidget('routers') },
        binding: { help: texts.form.binding, initial: 'transport', widget: bindingWidget },
        address: { help: 'Like tcp:10.0.0.7:5432' },
        precedence: { initial: 'default' },
        tags: tagsHint,
      },
    },
  ),
  kind(
    'auth-policies',
    ['authentication policy', 'Authentication policies', 'How identities may log in.'],
    'lock',
    'auth-policy',
    {
      columns: ['primary', 'secondary', 'identityCount'],
      fields: {
        name: {},
        // The rules of OpenZiti's default policy, except that expired certificates are not allowed.
        primary: {
          label: texts.logInRules.primary,
          isRequired: true,
          fields: primaryLogInFieldHints,
          initial: {
            cert: { allowed: true, allowExpiredCerts: false },
            extJwt: { allowed: true, allowedSigners: [] },
            updb: {
              allowed: true,
              lockoutDurationMinutes: 5,
              maxAttempts: 5,
              minPasswordLength: 10,
              requireMixedCase: false,
              requireNumberChar: false,
              requireSpecialChar: false,
            },
          },
        },
        secondary: {
          label: texts.logInRules.secondary,
          isRequired: true,
          fields: secondaryLogInFieldHints,
        },
        tags: tagsHint,
      },
    },
  ),
  kind(
    'external-jwt-signers',
    ['external JWT signer', 'External JWT signers', 'Identity providers whose tokens log in.'],
    'provider',
    'external-jwt-signer',
    {
      wizard: 'signer',
      tasks: ['signer'],
      columns: ['enabled', 'issuer', 'audience'],
      advanced: [
        'scopes',
        'kid',
        'targetToken',
        'enrollAuthPolicyId',
        'enrollAttributeClaimsSelector',
        'enrollNameClaimsSelector',
        'enrollToCertEnabled',
        'enrollToTokenEnabled',
      ],
      fields: {
        name: {},
        issuer: { help: texts.signers.fields.issuer.hint },
        audience: { help: texts.signers.audienceHint },
        enabled: { initial: true },
        claimsProperty: { label: texts.signers.claim, placeholder: 'sub' },
        useExternalId: { label: 'The claim is the external ID of the identity' },
        jwksEndpoint: {
          heading: texts.signers.keysHeading,
          label: 'Address of the keys (JWKS)',
          help: texts.signers.jwksHint,
        },
        certPem: { label: 'Certificate', help: texts.signers.certHint },
        clientId: {
          heading: texts.signers.logInHeading,
          label: texts.signers.fields.clientId.label,
        },
        externalAuthUrl: { label: 'Address for log-in' },
        scopes: {},
        kid: { label: 'Key ID of the certificate' },
        enrollAuthPolicyId: {
          label: 'Authentication policy of enrolled identities',
          widget: referenceWidget('auth-policies'),
        },
      },
    },
  ),
  kind(
    'cas',
    [
      'certificate authority',
      'Certificate authorities',
      'Authorities whose certificates log in or enroll.',
    ],
    'stamp',
    'ca',
    {
      columns: [
        'isVerified',
        'certificateEnd',
        'isAuthEnabled',
        'isAutoCaEnrollmentEnabled',
        'isOttCaEnrollmentEnabled',
      ],
      advanced: ['identityNameFormat', 'externalIdClaim'],
      fields: {
        name: {},
        certPem: { label: 'Certificate', help: texts.form.pem },
        identityRoles: {
          ...attributesHint('identities'),
          help: 'Identities that this CA enrolls get these attributes.',
        },
        isAuthEnabled: { initial: true },
        isAutoCaEnrollmentEnabled: { initial: true },
        isOttCaEnrollmentEnabled: {},
        identityNameFormat: { help: '[caName]-[commonName] by default.' },
      },
    },
  ),
  kind(
    'authenticators',
    ['authenticator', 'Authenticators', 'Passwords and certificates of identities.'],
    'key',
    'authenticator',
    {
      titleLabel: texts.list.titles.authenticators,
      columns: ['method', 'certificateEnd'],
      sort: 'identity',
      fields: {
        method: { optionTexts: texts.form.methods },
        identityId: { label: 'Identity', widget: referenceWidget('identities') },
        username: { shownIf: { field: 'method', is: ['updb'] }, isRequired: true },
        password: {
          help: texts.form.passwordRules,
          shownIf: { field: 'method', is: ['updb'] },
          isRequired: true,
        },
        certPem: {
          label: 'Certificate',
          help: texts.form.pem,
          shownIf: { field: 'method', is: ['cert'] },
          isRequired: true,
        },
      },
    },
  ),
  kind(
    'enrollments',
    ['enrollment', 'Enrollments', 'Outstanding invitations of identities and routers.'],
    'ticket',
    'enrollment',
    {
      titleLabel: texts.list.titles.enrollments,
      tasks: ['identity', 'router'],
      columns: ['expiresAt', 'method'],
      // The token that expires first is at the top, unless the list also shows expired tokens.
      sort: 'expiresAt',
      fields: {
        method: { optionTexts: texts.form.methods },
        identityId: { label: 'Identity', widget: referenceWidget('identities') },
        expiresAt: { label: 'Ends', widget: { is: 'end' }, initial: () => expiryAfter(DAY_MS) },
        caId: {
          label: 'Certificate authority',
          widget: referenceWidget('cas'),
          shownIf: { field: 'method', is: ['ottca'] },
        },
        username: { shownIf: { field: 'method', is: ['updb'] } },
      },
    },
  ),
  kind(
    'revocations',
    ['revocation', 'Revocations', 'Tokens that were revoked before they expired.'],
    'ban',
    'revocation',
    { columns: ['type', 'expiresAt'] },
  ),
  kind(
    'controller-settings',
    ['controller setting', 'Controller settings', 'Settings of one controller, or of all.'],
    'sliders',
    'controller-setting',
    {
      fields: {
        controllerId: { label: 'Controller', initial: 'global', widget: { is: 'controller' } },
        oidc: {
          isRequired: true,
          fields: {
            redirectUris: {
              label: 'Redirect addresses',
              help: 'Addresses of programs to which the sign-in page may return.',
            },
            postLogoutUris: { label: 'Addresses after the log-out' },
          },
        },
        tags: tagsHint,
      },
    },
  ),
  kind('routers', ['router', 'Routers', 'All routers.'], 'router', 'router', {
    columns: ['isOnline', 'onlineSince', 'cost'],
    fields: { name: {} },
  }),
]

const byPath = new Map(kinds.map((one) => [one.path, one]))

export function findKindAtPath(path: string): ConsoleKind | null {
  return byPath.get(path) ?? null
}
