import { managementCrudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import {
  roleAttributesField,
  booleanField,
  computedField,
  mapField,
  optionalTextField,
} from '../fields.ts'
import {
  connectedSymbol,
  enrolledRouterFields,
  outstandingEnrollmentFields,
  routerVersionField,
  commonRouterFields,
  routerSymbols,
  routerFingerprintFieldRules,
  capabilityNamesField,
  capabilitiesMaskField,
  versionInfoOrEmptyField,
} from '../parts/router-fields.ts'
import { textSchema } from '../response-schemas.ts'
import { subListOfExisting } from '../sub-lists.ts'

/** A router to which clients can connect if policies allow it. */
export const edgeRouter = defineEntity({
  name: 'edgeRouter',
  plural: 'edgeRouters',
  table: 'router',
  scope: { field: 'isEdge', value: true },
  operations: { management: managementCrudPermissions('router') },
  fields: {
    ...commonRouterFields,
    ...enrolledRouterFields,
    ...outstandingEnrollmentFields('edgeRouterId'),
    isVerified: booleanField({ settable: 'proposer' }),
    fingerprint: optionalTextField({ ...routerFingerprintFieldRules, shown: 'whenSet' }),
    certPem: optionalTextField({ settable: 'proposer', charactersMax: 65_536 }),
    /** Whether the router's tunnel hosts and dials services with the router's identity. */
    isTunnelerEnabled: booleanField(),
    roleAttributes: roleAttributesField({ nullIfEmpty: true }),
    appData: mapField(),
    hostname: computedField({ from: 'routerStatus', shows: 'hostname' }, textSchema),
    supportedProtocols: computedField(
      { from: 'routerStatus', shows: 'supportedProtocols' },
      { type: 'object', additionalProperties: textSchema },
    ),
    syncStatus: computedField({ from: 'routerStatus', shows: 'syncStatus' }, textSchema),
    capabilities: capabilityNamesField,
    capabilitiesMask: capabilitiesMaskField,
    version: routerVersionField,
    versionInfo: versionInfoOrEmptyField,
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
