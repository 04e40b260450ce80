package main

import (
	"k8s.io/code-generator/cmd/validation-gen/output_tests/tags/dependentforbidden"
	itemunion "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/item/union/simple"
	itemuniontypedef "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/item/union/typedef"
	itemzero "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/item/zerorooneof/simple"
	itemzerotypedef "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/item/zerorooneof/typedef"
	levelsmodes "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/levels/modes"
	levelssubfields "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/levels/subfields"
	levelsunions "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/levels/unions"
	"k8s.io/code-generator/cmd/validation-gen/output_tests/tags/mode"
	optionsdiscriminators "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/options/discriminators"
	optionsunions "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/options/unions"
	subfieldunions "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/subfield/unions"
	discriminatedcustom "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/union/union/discriminated/custom_members"
	discriminatedempty "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/union/union/discriminated/empty"
	discriminatedmultiple "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/union/union/discriminated/multiple"
	discriminatedsimple "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/union/union/discriminated/simple"
	discriminatedsparse "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/union/union/discriminated/sparse"
	undiscriminatedcustom "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/union/union/undiscriminated/custom_members"
	undiscriminatedmultiple "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/union/union/undiscriminated/multiple"
	undiscriminatedsimple "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/union/union/undiscriminated/simple"
	zerocustom "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/zerooroneof/zerooroneof/custom_members"
	zeromultiple "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/zerooroneof/zerooroneof/multiple"
	zerosimple "k8s.io/code-generator/cmd/validation-gen/output_tests/tags/zerooroneof/zerooroneof/simple"
	"k8s.io/code-generator/cmd/validation-gen/testscheme"
)

// tags is the folder of the packages, in the module of validation-gen.
const tags = "cmd/validation-gen/output_tests/tags"

// folders are those below tags whose packages are read. Each package with a marker of unions has to be in markedPackages.
var folders = []string{"union", "zerooroneof", "mode", "subfield", "options", "levels", "dependentforbidden", "item"}

// markedPackage is a package of tags with markers of unions, and its types for which code is generated.
type markedPackage struct {
	folder   string
	register func(*testscheme.Scheme) error
	types    []any
}

// nothing registers no code: validation-gen generates none for a discriminator without members.
func nothing(*testscheme.Scheme) error { return nil }

var markedPackages = []markedPackage{
	{"dependentforbidden", dependentforbidden.RegisterValidations, []any{
		&dependentforbidden.Struct{}, &dependentforbidden.MultiDependent{}, &dependentforbidden.MultiTrigger{},
		&dependentforbidden.AllKinds{}}},
	{"item/union/simple", itemunion.RegisterValidations, []any{&itemunion.Struct{}}},
	{"item/union/typedef", itemuniontypedef.RegisterValidations, []any{&itemuniontypedef.Struct{}}},
	{"item/zerorooneof/simple", itemzero.RegisterValidations, []any{&itemzero.Struct{}}},
	{"item/zerorooneof/typedef", itemzerotypedef.RegisterValidations, []any{&itemzerotypedef.Struct{}}},
	{"levels/modes", levelsmodes.RegisterValidations, []any{
		&levelsmodes.AlphaStruct{}, &levelsmodes.BetaStruct{}, &levelsmodes.MixedLevels{}, &levelsmodes.CrossLevels{},
		&levelsmodes.SameFieldMixed{}, &levelsmodes.SameValueMixedPayloads{}}},
	{"levels/subfields", levelssubfields.RegisterValidations, []any{&levelssubfields.Struct{}}},
	{"levels/unions", levelsunions.RegisterValidations, []any{
		&levelsunions.Struct{}, &levelsunions.UnionStructBeta{}, &levelsunions.MyStruct{}, &levelsunions.MyStructBeta{},
		&levelsunions.MyListStruct{}, &levelsunions.MyListStructBeta{}}},
	{"mode", mode.RegisterValidations, []any{
		&mode.StrictUnion{}, &mode.SharedField{}, &mode.ChainedValidation{}, &mode.ImplicitForbidden{},
		&mode.NonStringDiscriminator{}, &mode.MultipleDiscriminators{}, &mode.Collections{}}},
	{"options/discriminators", optionsdiscriminators.RegisterValidations, []any{&optionsdiscriminators.Struct{}}},
	{"options/unions", optionsunions.RegisterValidations, []any{&optionsunions.Struct{}}},
	{"subfield/unions", subfieldunions.RegisterValidations, []any{&subfieldunions.Struct{}}},
	{"union/union/discriminated/custom_members", discriminatedcustom.RegisterValidations, []any{&discriminatedcustom.Struct{}}},
	{"union/union/discriminated/empty", nothing, []any{&discriminatedempty.Struct{}}},
	{"union/union/discriminated/multiple", discriminatedmultiple.RegisterValidations, []any{&discriminatedmultiple.Struct{}}},
	{"union/union/discriminated/simple", discriminatedsimple.RegisterValidations, []any{&discriminatedsimple.Struct{}}},
	{"union/union/discriminated/sparse", discriminatedsparse.RegisterValidations, []any{&discriminatedsparse.Struct{}}},
	{"union/union/undiscriminated/custom_members", undiscriminatedcustom.RegisterValidations, []any{&undiscriminatedcustom.Struct{}}},
	{"union/union/undiscriminated/multiple", undiscriminatedmultiple.RegisterValidations, []any{&undiscriminatedmultiple.Struct{}}},
	{"union/union/undiscriminated/simple", undiscriminatedsimple.RegisterValidations, []any{&undiscriminatedsimple.Struct{}}},
	{"zerooroneof/zerooroneof/custom_members", zerocustom.RegisterValidations, []any{&zerocustom.Struct{}}},
	{"zerooroneof/zerooroneof/multiple", zeromultiple.RegisterValidations, []any{&zeromultiple.Struct{}}},
	{"zerooroneof/zerooroneof/simple", zerosimple.RegisterValidations, []any{&zerosimple.Struct{}}},
}
