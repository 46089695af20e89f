// Package stack brings the whole application up on this machine: an AWS emulator, the payment-provider simulator, the
// deployed CDK app and its seed; tells its story; follows its logs; tests it; and takes it down again. The package belongs
// to this repository's tools and has no compatibility promise.
//
// A stack lives in a state folder: pid files, logs, the last deployment's outputs. Several stacks with different folders
// and ports live side by side. Only the two functions at the end of this package's list, Deploy and Destroy, talk to AWS;
// every other child runs in LocalEnvironment.
package stack
