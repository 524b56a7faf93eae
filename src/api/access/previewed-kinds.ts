export const previewedActions = ['create', 'replace', 'patch', 'delete'] as const
export type PreviewedAction = (typeof previewedActions)[number]

/** Kinds that affect access, with the actions that a preview supports. */
export const previewedActionsByKind = {
  identity: previewedActions,
  service: previewedActions,
  servicePolicy: previewedActions,
  edgeRouterPolicy: previewedActions,
  serviceEdgeRouterPolicy: previewedActions,
  postureCheck: previewedActions,
  // A new one is enrolled, and that is no matter of access.
  edgeRouter: ['replace', 'patch', 'delete'],
} as const satisfies Readonly<Record<string, readonly PreviewedAction[]>>
export const previewedKinds = Object.keys(previewedActionsByKind) as readonly PreviewedKind[]
export type PreviewedKind = keyof typeof previewedActionsByKind
