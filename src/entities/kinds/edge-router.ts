import { crud } from '../crud.ts'
import { defineEntity } from '../define.ts'
import { attributes, boolean, computed, map, optionalText } from '../fields.ts'
import {
  connectedSymbol,
  enrolledFields,
  outstandingEnrollment,
  shownVersion,
  routerFields,
  routerSymbols,
  uniqueFingerprint,
  capabilities,
  capabilitiesMask,
  versionInfoOrEmpty,
} from '../parts/router-fields.ts'
import { text } from '../shapes.ts'
import { subListOfExisting } from '../sub-lists.ts'

/** A router to which clients can connect if policies allow it. */
export const edgeRouter = defineEntity({
  name: 'edgeRouter',
  plural: 'edgeRouters',
  table: 'router',
  scope: { field: 'isEdge', value: true },
  operations: { management: crud('router') },
  fields: {
    ...routerFields,
    ...enrolledFields,
    ...outstandingEnrollment('edgeRouterId'),
    isVerified: boolean({ settable: 'proposer' }),
    fingerprint: optionalText({ ...uniqueFingerprint, shown: 'whenSet' }),
    certPem: optionalText({ settable: 'proposer', charactersMax: 65_536 }),
    /** Whether the router's tunnel hosts and dials services with the router's identity. */
    isTunnelerEnabled: boolean(),
    roleAttributes: attributes({ nullIfEmpty: true }),
    appData: map(),
    hostname: computed({ from: 'routerStatus', shows: 'hostname' }, text),
    supportedProtocols: computed(
      { from: 'routerStatus', shows: 'supportedProtocols' },
      { type: 'object', additionalProperties: text },
    ),
    syncStatus: computed({ from: 'routerStatus', shows: 'syncStatus' }, text),
    capabilities,
    capabilitiesMask,
    version: shownVersion,
    versionInfo: versionInfoOrEmpty,
  },
  indexes: ['roleAttributes'],
  symbols: [
    ...routerSymbols,
    connectedSymbol,
    { ...connectedSymbol, name: 'online' },
    'roleAttributes',
    'isVerified',
    'isTunnelerEnabled',
  ],
  links: ['edge-router-policies'],
  lists: {
    'edge-router-policies': subListOfExisting('edgeRouterPolicy', 'policies', 'edgeRouterRoles'),
    'service-edge-router-policies': {
      ...subListOfExisting('serviceEdgeRouterPolicy', 'policies', 'edgeRouterRoles'),
      declaredAs: 'servicePolicy',
    },
    identities: subListOfExisting('identity', 'policyLinks', 'edgeRouterPolicy'),
    services: subListOfExisting('service', 'policyLinks', 'serviceEdgeRouterPolicy'),
  },
  hasRoleFilter: true,
})
