import {
  flagShape,
  listShape,
  nullableShape,
  objectShape,
  optionalShape,
  textShape,
  timeShape,
} from '../client/answer-shape.ts'

const certificate = objectShape({ subject: textShape, notAfterMs: timeShape })
const inForce = objectShape({
  certificates: listShape(certificate),
  issuingPem: nullableShape(textShape),
  isRenewedHere: optionalShape(flagShape),
  renewAtMs: optionalShape(nullableShape(timeShape)),
  refused: nullableShape(textShape),
  alarm: nullableShape(textShape),
  serverCertificates: optionalShape(
    listShape(
      objectShape({
        path: textShape,
        certificate: nullableShape(certificate),
        refused: nullableShape(textShape),
      }),
    ),
  ),
})

/** Shapes of the answers to the verbs of `flotilla pki`. */
export const pkiShapes = {
  certificates: inForce,
  renew: inForce,
  reload: inForce,
  'renew-member': objectShape({ id: textShape, certificatePem: textShape, notAfterMs: timeShape }),
  'issuing-authority': objectShape({ notAfterMs: timeShape, formerNotAfterMs: timeShape }),
  issue: objectShape({ certificatePem: textShape, notAfterMs: timeShape }),
} as const
